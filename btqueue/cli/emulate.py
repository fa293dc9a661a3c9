"""`btqueue emulate`: real programs over a simulated network, in real time (Linux, root)."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from btqueue.cli.errors import NO_ANSWER, BadInput, put, put_json, say
from btqueue.cli.options import Call

if TYPE_CHECKING:
    from btqueue.emulation.real_time import Account
    from btqueue.scenario import Scenario

LATE_MS = 0.625
"""A slot: a radio would have been on time."""
SHARES = {"median": 0.5, "p99": 0.99, "most": 1.0}
"""Of packets that are told how late they were at most."""


def emulate(
    call: Call,
    flow: int = 1,
    program: str | None = None,
    server: str | None = None,
    duration_s: float | None = None,
    pcap: Path | None = None,
) -> None:
    """Let real programs talk over the simulated network, in real time (Linux, as root).

    The two ends of a flow become network namespaces with the addresses 10.77.0.1 (its source) and 10.77.0.2
    (its target). Their packets cross the network as the scenario says; the other flows are simulated.
    Ctrl-C ends it. Nothing is left behind.
    """
    from btqueue.captures.files import CaptureWriter
    from btqueue.cli.engines import prepare_simulator
    from btqueue.cli.files import Target
    from btqueue.emulation.carrier import Carrier, ends_of
    from btqueue.emulation.namespaces import require_namespaces
    from btqueue.emulation.real_time import Emulation
    from btqueue.interrupts import interrupt_held
    from btqueue.scenario.topology import topology
    from btqueue.simulator.scope import require_simulated

    wanted, as_json, quiet = call.base, call.as_json, call.quiet
    require_simulated(wanted)
    count = len(topology(wanted).flows)
    if flow > count:
        raise BadInput(f"--flow {flow}: the scenario has {count} active flow{'s' if count > 1 else ''}")
    if duration_s is not None and not 0 < duration_s < math.inf:
        raise BadInput(f"--duration {duration_s:g}: must be above 0")
    programs = [(1, "--serve", words_of("--serve", server)), (0, "--exec", words_of("--exec", program))]
    target = Target.checked(pcap, "--pcap", {".pcap": "pcap"}, force=call.force)
    require_namespaces()
    prepare_simulator(wanted, quiet=quiet)
    with ExitStack() as stack:
        capture = None
        if target is not None:
            part = stack.enter_context(target.replaced())
            capture = CaptureWriter(stack.enter_context(part.open("wb")))
        with interrupt_held():
            carrier = Carrier(wanted, flow - 1)
            carrier.warm_up()
        emulation = stack.enter_context(Emulation(carrier, capture))
        if not quiet:
            for name, end in zip(ends_of(wanted, flow - 1), emulation.ends, strict=True):
                say(f"{name} is {end.address}; a shell there: {shlex.join(end.command(['bash']))}")
        interrupted = False
        waits_for = None
        try:
            for end, option, words in programs:
                if words:
                    emulation.start(end, words, sys.stderr.fileno() if as_json else None)
                    if option == "--exec":
                        waits_for = len(emulation.account.exit_codes) - 1
                    elif not emulation.listening(end) and not quiet:
                        say(f"{option} {server}: listens to no socket yet")
            emulation.run(until_ended=waits_for, duration_s=duration_s, report=None if quiet else report_line)
        except KeyboardInterrupt:
            interrupted = True
    account = emulation.account
    if as_json:
        put_json(document(wanted, account, interrupted))
    else:
        put(summary(account))
    late = account.lateness_ms(0.99)
    if late > LATE_MS and not quiet:
        say(f"the emulation warns: packets were up to {late:.3g} ms late (99 of 100), more than a slot")
    if interrupted:
        raise KeyboardInterrupt
    code = None if waits_for is None else account.exit_codes[waits_for]
    if code:
        say(f"--exec {program}: ended with the exit code {code}")
        raise typer.Exit(NO_ANSWER)


def words_of(option: str, text: str | None) -> list[str]:
    """Return the words of a command, none if there is none.

    Raises:
        BadInput: they cannot be told apart, or the program does not exist.
    """
    if text is None:
        return []
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadInput(f"{option} {text}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise BadInput(f"{option} {text!r}: there is no such program")
    return words


def report_line(account: Account) -> None:
    """Return a line with rates, packets and lateness up to now."""
    ways = "; ".join(
        f"{way} {told['delivered_kbps']:.4g} kbit/s, {told['delivered']} of {told['sent']} packets"
        for way, told in ways_of(account).items()
    )
    late = f"; late {account.lateness_ms(0.99):.3g} ms" if any(way.delivered for way in account.ways) else ""
    say(f"{account.elapsed_s:.0f} s: {ways}; {account.queued} wait{late}")


def summary(account: Account) -> str:
    """Return the result in words."""
    lines = [f"emulated: {account.elapsed_s:.4g} s in real time"]
    for way, told in ways_of(account).items():
        delay = f"; mean delay {1e3 * told['mean_delay_s']:.4g} ms" if told["delivered"] else ""
        lines.append(
            f"  {way:<5}  {told['delivered_kbps']:.4g} kbit/s; {told['sent']} packets sent, "
            f"{told['delivered']} delivered, {told['lost']} lost{delay}"
        )
    if any(way.delivered for way in account.ways):
        shares = ", ".join(f"{account.lateness_ms(share):.3g}" for share in SHARES.values())
        lines.append(f"  handed over late by {shares} ms (median, 99 of 100, most)")
    return "\n".join(lines)


def ways_of(account: Account) -> dict[str, dict[str, Any]]:
    """Return the numbers of both directions, as JSON has them."""
    there, back = (way.told(account.elapsed_s) for way in account.ways)
    return {"there": there, "back": back}


def document(scenario: Scenario, account: Account, interrupted: bool) -> dict[str, Any]:
    """Return the JSON object of an emulation."""
    from btqueue.study.provenance import as_document

    emulated = {
        "complete": not interrupted,
        "elapsed_s": account.elapsed_s,
        **ways_of(account),
        "lateness_ms": {name: account.lateness_ms(share) for name, share in SHARES.items()},
        "real_time_priority": account.first_in_line,
        "kernel": os.uname().release,
    }
    return as_document(scenario, emulate=emulated)
