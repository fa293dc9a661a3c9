"""Network namespaces with a TUN device each: where real programs meet a link that this process plays.

A namespace has no name. It lives as long as the processes in it. These share a separate PID namespace, whose
first process waits for the end of its standard input, a pipe from this process. However this process ends,
the kernel closes the pipe, the first process ends, and the kernel kills all others with it. So the
namespaces vanish. The device is made here and then moved: its file descriptor stays with this process.
"""

import errno
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

TUN = "/dev/net/tun"
DEVICE = "bt0"
"""Name of the device inside each namespace."""
SET_DEVICE = 0x400454CA
IS_TUN, NO_PACKET_INFORMATION = 0x0001, 0x1000
"""`TUNSETIFF` and its flags (Linux, `if_tun.h`)."""
PROGRAMS = ("ip", "unshare", "nsenter")
"""From iproute2 and util-linux."""


class EmulationUnavailable(Exception):
    """This machine, or this user, cannot have network namespaces and TUN devices; says why."""


def require_namespaces() -> None:
    """Make sure that namespaces and TUN devices can be made.

    Raises:
        EmulationUnavailable: this is not Linux, the user is not root, or a program or the device is missing.
    """
    if sys.platform != "linux":
        raise EmulationUnavailable(f"emulation needs Linux (network namespaces and TUN), not {sys.platform}")
    if os.geteuid() != 0:
        raise EmulationUnavailable("emulation makes network namespaces: run it as root (sudo)")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise EmulationUnavailable(
            f"emulation needs the programs {', '.join(missing)} (packages iproute2 and util-linux)"
        )
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        raise EmulationUnavailable(f"{TUN}: {os.strerror(error.errno or errno.EIO)}") from None


class Namespace(NamedTuple):
    """A network namespace with a TUN device in it.

    Attributes:
        address: its IPv4 address.
        process: number of a process outside of it that has it for its children.
        descriptor: the device, not blocking: a read gives the next IP packet that the namespace has sent, a
            write hands one to it.
    """

    address: str
    process: int
    descriptor: int

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` inside, for this process or in another terminal."""
        of = f"/proc/{self.process}/ns"
        enter = ["nsenter", f"--net={of}/net", f"--pid={of}/pid_for_children"]
        return [*enter, "unshare", "--mount-proc", "--", *words]  # /proc has the numbers of processes inside

    def run(self, words: Sequence[str]) -> str:
        """Run a program inside, to its end, and return its output.

        Raises:
            EmulationUnavailable: it failed.
        """
        return command(self.command(words))

    def set_kernel(self, name: str, value: object) -> None:
        """Set a kernel variable (`sysctl`) of this namespace, if the kernel has it for each namespace."""
        script = 'test -e "/proc/sys/$1" || exit 0; printf %s "$2" > "/proc/sys/$1"'
        self.run(["sh", "-c", script, "sh", name, str(value)])


@contextmanager
def namespace(address: str) -> Iterator[Namespace]:
    """Make a namespace and its device; after the block both are gone.

    Args:
        address: IPv4 address of the device, in a network of 256.

    Raises:
        EmulationUnavailable: the kernel refuses.
    """
    first = "echo; cat; exit"  # a shell, for whoever is first collects the orphans that have ended
    words = ["unshare", "--net", "--pid", "--kill-child", "--", "sh", "-c", first]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with ExitStack() as stack:
        # in a session of its own: Ctrl-C is for this process, which cleans up
        holder: Any = subprocess.Popen(words, start_new_session=True, **pipes)
        stack.callback(holder.communicate)
        if not holder.stdout.readline():  # the line comes from inside
            raise EmulationUnavailable(f"no network namespace: {holder.stderr.read().decode().strip()}")
        try:
            descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            made = Namespace(address, holder.pid, descriptor)
            _make_device(made)
        except OSError as error:
            raise EmulationUnavailable(f"no TUN device: {error.strerror}") from None
        yield made


def _make_device(inside: Namespace) -> None:
    request = struct.pack("16sH22x", b"btqueue%d", IS_TUN | NO_PACKET_INFORMATION)
    made = fcntl.ioctl(inside.descriptor, SET_DEVICE, request)
    name = made[:16].rstrip(b"\0").decode()
    command(["ip", "link", "set", name, "netns", str(inside.process), "name", DEVICE])
    inside.set_kernel("net/ipv6/conf/all/disable_ipv6", 1)  # its announcements would cross the link
    inside.run(["ip", "link", "set", "lo", "up"])
    inside.run(["ip", "address", "add", f"{inside.address}/24", "dev", DEVICE])
    inside.run(["ip", "link", "set", DEVICE, "txqueuelen", "5000", "up"])


def ask_to_end(program: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to a program that was started by a namespace's command, unless it has ended."""
    if program.poll() is None:  # what was started is nsenter, and the program its child
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended by itself in the meantime
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGTERM)


def command(words: Sequence[str]) -> str:
    """Run a program to its end and return its output.

    Raises:
        EmulationUnavailable: it failed.
    """
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise EmulationUnavailable(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
