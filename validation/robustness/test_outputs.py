"""What commands print and write: full or closed streams, files that are there, signals, full disks."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from command_line import failure, run
from commands import COMMAND, DEADLINE_S, UNCOMPILED, full_disk, python
from typer.testing import CliRunner

import btqueue.study.sensitivity  # noqa: F401  before a stand-in takes the solver's place, which it would keep
from btqueue.cli import app
from btqueue.cli.errors import Commands

NAME = "chen-2004/adaptive-1"
"""Solved in milliseconds."""
SHORT = ["--set", "run.duration_s=5", "--set", "run.warmup_s=1", "--set", "run.replications=2"]
MOMENT = "--set run.duration_s=0.1 --set run.warmup_s=0 --set run.replications=2"
TROUBLE = ("Traceback", "Exception ignored", "Error in")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which $btqueue is the command."""
    environment = UNCOMPILED | {"btqueue": " ".join(COMMAND)}
    words = ["bash", "-c", line]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, env=environment)
    assert not any(word in done.stderr for word in TROUBLE), done.stderr
    return done


# ------------------------------------------------------------------------------------- standard streams


GONE = "| true; exit ${PIPESTATUS[0]}"


@pytest.mark.parametrize(
    ("what", "where", "why"),
    [
        *((what, "> /dev/full", "No space left on device") for what in (f"solve {NAME}", "--help")),
        *((what, GONE, "Broken pipe") for what in ("models --json", "--help")),
    ],
)
def test_a_full_standard_output_and_a_reader_that_has_gone_are_a_message_and_exit_code_2(what, where, why):
    done = shell(f"$btqueue {what} {where}")
    assert done.returncode == 2
    assert done.stderr == f"btqueue: standard output takes nothing more ({why})\n"


@pytest.mark.parametrize("what", [f"solve {NAME} --out OUT/result.nc", "--help"])
def test_a_closed_standard_output_is_refused_before_anything_is_computed(tmp_path, what):
    done = shell(f"$btqueue {what.replace('OUT', str(tmp_path))} >&-")
    assert done.returncode == 2 and "standard output is closed" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_though_standard_output_is_full(tmp_path):
    assert shell(f"$btqueue solve {NAME} --out {tmp_path}/result.csv > /dev/full").returncode == 2
    assert "goodput_kbps" in (tmp_path / "result.csv").read_text()


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&- <&-"])
def test_messages_that_nobody_takes_change_neither_answer_nor_exit_code(stream):
    done = shell(f"$btqueue simulate {NAME} {MOMENT} --json {stream}")
    assert done.returncode == 0 and json.loads(done.stdout)["simulate"]["complete"]
    assert shell(f"$btqueue solve no-such-scenario {stream}").returncode == 2


# --------------------------------------------------------------------------------- unseen characters

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
STEERING = "\x1b\x07\x9b\u202e"
MARKUP = "[red]x[/red][/b]"


@pytest.fixture
def evil(tmp_path):
    """Return a scenario with names and a title that would steer a terminal."""

    def quoted(text):
        return json.dumps(text)

    file = tmp_path / "evil.toml"
    b = quoted("b" + MARKUP)
    piconet = f"name={quoted(EVIL)}, central={quoted('c' + EVIL)}, peripherals=['a', {b}]"
    network = f"topology='custom'\npiconet_list=[{{{piconet}}}]\nflows=[{{from='a', to={b}}}]\n"
    file.write_text(f"title = {quoted(EVIL + MARKUP)}\n[network]\n{network}")
    (tmp_path / "unknown.toml").write_text(f"{quoted(EVIL)} = 1\n[polling]\nlimit = {quoted(EVIL)}\n")
    (tmp_path / "broken.toml").write_text(f"a = '{EVIL}'\n")
    (tmp_path / "comment.toml").write_text("# \x9b31m \u202e\n")
    (tmp_path / "theirs.csv").write_text(f"metric,value\n{EVIL},3\n")
    (tmp_path / "column.csv").write_text(f"metric,value,{EVIL}\ngoodput_kbps,3,4\n")
    (tmp_path / "queue.csv").write_text(f"metric,value,queue\nqueue_packets,3,{EVIL}\n")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "evil.toml"],
        ["simulate", "evil.toml", "--all", *SHORT],
        ["simulate", "evil.toml", "--pcap", "x.pcap", "--at", "z", *SHORT],
        ["compare", "evil.toml", *SHORT],
        ["sweep", "evil.toml", "--over", "polling.limit=1,2", "--engine", "simulate", *SHORT],
        ["sensitivity", "evil.toml", "--method", "closed"],
        ["dimension", "evil.toml", "--choose", "polling.limit=1,2", "--maximize", "goodput_kbps"],
        ["solve", "unknown.toml"],
        ["solve", "broken.toml"],
        ["models", "comment.toml"],
        ["check", "theirs.csv", "--scenario", "evil.toml"],
        ["check", "column.csv", "--scenario", "evil.toml"],
        ["check", "queue.csv", "--scenario", "evil.toml", "--no-simulate"],
    ],
    ids=" ".join,
)
def test_no_file_steers_the_terminal(engines, evil, monkeypatch, arguments):
    monkeypatch.chdir(evil)
    result = CliRunner().invoke(app, arguments, color=True)  # as a terminal: nothing is left out
    assert result.exit_code in (0, 2, 3), result.exception
    assert result.output and not any(c in result.output for c in STEERING)
    if arguments[1] == "evil.toml" and result.exit_code == 0:
        assert MARKUP in result.output  # shown, not obeyed


# ------------------------------------------------------------------------------------- files that are there

CHOOSING = ["dimension", NAME, "--choose", "polling.limit=1,2", "--maximize", "goodput_kbps"]
WRITING = {
    "solve --out": ["solve", NAME, "--out", "x.nc"],
    "simulate --out": ["simulate", NAME, "--out", "x.csv"],
    "compare --out": ["compare", NAME, "--out", "x.nc"],
    "simulate --trace": ["simulate", NAME, "--trace", "x.parquet"],
    "simulate --pcap": ["simulate", NAME, "--pcap", "x.pcap"],
    "emulate --pcap": ["emulate", NAME, "--pcap", "x.pcap"],
    "simulate --series": ["simulate", NAME, "--series", "x.png"],
    "sweep --out": ["sweep", NAME, "--over", "polling.limit=1,2", "--out", "x.nc"],
    "sweep --out csv": ["sweep", NAME, "--over", "polling.limit=1,2", "--out", "x.csv"],
    "sweep --plot": ["sweep", NAME, "--over", "polling.limit=1,2", "--plot", "x.svg"],
    "sensitivity --out": ["sensitivity", NAME, "--out", "x.csv"],
    "sensitivity --plot": ["sensitivity", NAME, "--plot", "x.pdf"],
    "dimension --out": [*CHOOSING, "--out", "x.json"],
    "dimension --plot": [*CHOOSING, "--plot", "x.svg"],
    "check --out": ["check", "theirs.csv", "--scenario", NAME, "--out", "x.json"],
    "check --plot": ["check", "theirs.csv", "--scenario", NAME, "--plot", "x.png"],
    "fit --out": ["fit", "theirs.csv", "--scenario", NAME, "--free", "radio.ber", "--out", "x.json"],
    "fit --plot": ["fit", "theirs.csv", "--scenario", NAME, "--free", "radio.ber", "--plot", "x.png"],
    "figures --out": ["figures", "chen-2004/3", "--out", "."],
    "figures --all": ["figures", "--all", "--out", "."],
    "validate --out": ["validate", "--claims", "two-hops-halve", "--out", "."],
}  # fmt: skip
"""Every option that writes a file."""
PLACES = {
    "figures --out": "fig_3.png",
    "figures --all": "chen-2004/fig_3-b.png",
    "validate --out": "report.md",
}


def place_of(option: str) -> Path:
    return Path(PLACES.get(option) or WRITING[option][-1])


def state_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = [(path.name, path.lstat()) for path in folder.rglob("*")]
    return {name: (state.st_ino, state.st_size, state.st_mtime_ns) for name, state in found}


@pytest.mark.parametrize("there", ["file", "link", "dangling link", "link --force", "pipe --force"])
@pytest.mark.parametrize("option", WRITING)
def test_what_is_there_is_not_replaced_and_nothing_is_computed(engines, here, option, there):
    """Without --force nothing is, and with it a regular file alone."""
    engines.network.solve = engines.simulator.simulate = None  # a call would be a TypeError
    Path("theirs.csv").write_text("metric,value\ngoodput_kbps,100\n")
    place = place_of(option)
    place.parent.mkdir(exist_ok=True)
    there, *force = there.split(" --")
    Path("mine").write_text("mine")
    if there == "file":
        place.write_text("mine")
    elif there == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("mine" if there == "link" else "nowhere")
    before = state_of(here)
    message = failure(*WRITING[option], *(f"--{word}" for word in force))
    said = ["--force", "left as it is"] if there == "file" else ["which is not replaced"]
    assert place.name in message and any(words in message for words in said)  # a sweep's may be damaged
    assert state_of(here) == before
    assert Path("mine" if there != "file" else place).read_text() == "mine"


QUICKLY = [option for option in WRITING if option.split()[0] in ("solve", "compare", "sweep", "dimension")]


@pytest.mark.parametrize("option", [*QUICKLY, "simulate --out"])
def test_force_replaces_a_file(engines, here, option):
    place = place_of(option)
    place.write_text("mine")
    run(*WRITING[option], "--force")
    assert place.stat().st_size > 100 and os.listdir() == [place.name]


def test_every_option_that_names_a_file_to_write_is_tested_here():
    from typer.main import get_command

    group = get_command(app)
    assert isinstance(group, Commands)
    found = {
        f"{name} {option}"
        for name, command in group.commands.items()
        for parameter in command.params
        for option in parameter.opts
        if option in ("--out", "--plot", "--trace", "--pcap", "--series")
        or "Write" in (getattr(parameter, "help", "") or "")
    }
    assert found == {" ".join(option.split()[:2]) for option in WRITING} - {"figures --all"}


@pytest.mark.parametrize("name", ["long" * 100 + ".nc", "long" * 100 + "/x.nc", "zero\0.nc"])
def test_a_name_that_no_file_can_have_is_refused_in_words(engines, tmp_path, name):
    assert "--out" in failure("solve", NAME, "--out", tmp_path / name)


# -------------------------------------------------------------------------------------------- sweeps

SWEEP = ["sweep", NAME, "--over", "polling.limit=1..3", "--no-check"]


@pytest.mark.parametrize("name", ["x.nc", "x.csv"])
def test_an_interrupted_sweep_goes_on_without_force_and_spares_a_file_of_others(engines, here, name):
    solve, calls = engines.network.solve, []

    def interrupted(scenario):
        calls.append(scenario)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return solve(scenario)

    engines.network.solve = interrupted
    run(*SWEEP, "--out", name, code=130)
    Path(name).write_text("mine")
    failure(*SWEEP, "--out", name)
    assert Path(name).read_text() == "mine" and len(calls) == 2
    Path(name).unlink()
    run(*SWEEP, "--out", name)
    assert len(calls) == 4 and os.listdir() == [name]


def folder_of_an_earlier_version(path: Path) -> None:
    path.mkdir()
    (path / "journal").write_text("00000002 0de2f63b {}\n")
    (path / "lock").symlink_to("../mine")
    (path / "diary").write_text("mine")


THEIRS = {
    'does not begin with "btqueue sweep journal 3"': lambda path: path.write_text("mine\n" * 9),
    "or is damaged there": Path.touch,
    "is a link, which is not followed": lambda path: path.symlink_to("mine"),
    "is a link": lambda path: path.symlink_to("/dev/full"),
    "pipes and devices are not read": os.mkfifo,
    "is a folder, as earlier versions of btqueue made": folder_of_an_earlier_version,
}


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("name", ["x.nc", "x.csv"])
@pytest.mark.parametrize("words", THEIRS)
def test_what_has_the_name_of_a_journal_and_is_none_is_left_alone(engines, here, words, name, force):
    engines.network.solve = None  # nothing may be computed
    (here / "mine").write_text("mine")
    THEIRS[words](here / f"{name}.partial")
    before = state_of(here)
    message = failure(*SWEEP, "--out", name, *force)
    for told in (f"--out {here}/{name}.partial: ", words, "left as it is", "move the file away"):
        assert told in message
    assert state_of(here) == before


def test_force_begins_a_sweep_anew_in_place_of_another_one(engines, here):
    run(*SWEEP, "--out", "x.nc")
    other = ["sweep", NAME, "--over", "polling.limit=1..4", "--out", "x.nc"]
    message = failure(*other)
    assert "holds another sweep" in message and "--force" in message
    run(*other, "--force")
    from btqueue.study.sweep_files import read_sweep

    assert read_sweep("x.nc").sizes["polling.limit"] == 4


def test_a_sweep_killed_before_its_journal_was_removed_is_complete(engines, here, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr("btqueue.study.sweep_store.Journal.remove", lambda journal: None)
        run(*SWEEP, "--out", "x.csv")
    content = Path("x.csv").read_bytes()
    run(*SWEEP, "--out", "x.csv")
    assert os.listdir() == ["x.csv"] and Path("x.csv").read_bytes() == content


# ------------------------------------------------------------------------------------------ full disks


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize(
    "option",
    [o for o in WRITING if o.split()[0] in ("solve", "compare", "dimension", "check")]
    + ["simulate --out", "sweep --plot"],
)
def test_on_a_full_disk_the_answer_is_printed_and_then_the_message(engines, here, option, as_json):
    (here / "theirs.csv").write_text("metric,value\ngoodput_kbps,100\n")
    place = place_of(option)
    place.write_text("older")
    with full_disk(64):
        result = run(*WRITING[option], *as_json, "--force", code=2)
    assert "goodput" in result.stdout
    assert f"{option.split()[1]} " in result.stderr and "cannot be written (File too large)" in result.stderr
    assert sorted(os.listdir()) == ["theirs.csv", place.name] and place.read_text() == "older"
    if as_json and "files" in json.loads(result.stdout):
        assert json.loads(result.stdout)["files"] == {}


# ---------------------------------------------------------------------------------------------- signals

# In each something is busy for ever when the signal comes. The first does not hear of it.
BUSY = {
    "in C while a file is written": (
        "import ctypes\n"
        "def slowly(part, *arguments):\n"
        "    part.write_bytes(b'half')\n"
        "    later.start()\n"
        "    lock = ctypes.create_string_buffer(64)\n"
        "    while True: ctypes.CDLL(None).pthread_mutex_lock(lock)\n"
        "files.WRITERS['.nc'] = slowly\n"
    ),
    "in a compiler that calls back": (
        "from btqueue.network.numba_cache import kept\n"
        "make = lambda keep: later.start() or time.sleep(1e6)\n"
        "engines.run_solver = lambda scenario: kept(make, Path.cwd())\n"
    ),
    "in a thread that compiles": (
        "def run(scenario):\n"
        "    threading.Thread(target=time.sleep, args=(1e6,)).start()\n"
        "    later.start()\n"
        "    time.sleep(1e6)\n"
        "engines.run_solver = run\n"
    ),
}


@pytest.mark.parametrize(
    ("what", "name", "code"), list(zip(BUSY, ("SIGTERM", "SIGHUP", "SIGTERM"), (143, 129, 143), strict=True))
)
def test_a_signal_does_not_wait_for_what_does_not_return_to_python(tmp_path, what, name, code):
    program = (
        "import os, signal, threading, time\nfrom pathlib import Path\nfrom btqueue.__main__ import main\n"
        "import btqueue.cli.engines as engines, btqueue.cli.files as files\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        f"later = threading.Timer(0.5, os.kill, (os.getpid(), signal.{name}))\n"
    )
    done = python("-c", f"{program}{BUSY[what]}main()", "solve", NAME, "--out", "x.nc", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (code, "btqueue: interrupted\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "code", "warmup_s"), [("SIGINT", 130, 1000), ("SIGTERM", 143, 0)])
def test_a_signal_keeps_what_was_simulated_by_then(tmp_path, name, code, warmup_s):
    """The fourth piece of a simulation is of its warm-up, if there is one."""
    signalling = (
        "import os, signal, sys, btqueue.simulator.engine as e, btqueue.simulator.replications as r\n"
        "name, real, count, e.EVENTS_A_PAUSE = sys.argv.pop(), r.advance, [], 1000\n"
        "def advance(sim, until):\n"
        "    count.append(0)\n"
        "    if len(count) == 4: os.kill(os.getpid(), getattr(signal, name))\n"
        "    return real(sim, until)\n"
        "r.advance = advance\n"
        "from btqueue.cli import app\n"
        "app(sys.argv[1:])"
    )
    wanted = ["--set", f"run.warmup_s={warmup_s}", "--set", "run.duration_s=1000", "--out", "x.csv"]
    done = python("-c", signalling, "simulate", NAME, *wanted, name, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    if warmup_s:
        assert (done.stdout, done.stderr) == ("", "btqueue: interrupted\n") and not os.listdir(tmp_path)
        return
    assert "INTERRUPTED" in done.stdout and "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["x.csv"] and "interrupted" in (tmp_path / "x.csv").read_text()


def test_nohup_stays_nohup():
    code = (
        "import signal, sys, os\nfrom btqueue.cli import app\nimport btqueue.cli.engines as e\n"
        "real = e.run_solver\n"
        "def run(s):\n    os.kill(os.getpid(), signal.SIGHUP)\n    return real(s)\n"
        "e.run_solver = run\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\napp(sys.argv[1:])"
    )
    done = python("-c", code, "solve", NAME)
    assert done.returncode == 0 and "goodput" in done.stdout, done.stderr
