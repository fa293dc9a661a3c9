"""How commands fail: exit code, one clear message, no trace, nothing on standard output or on disk."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from commands import COMMAND, DEADLINE_S, UNCOMPILED
from typer.testing import CliRunner

from btqueue.cli import app

NAME = "venugopal-2006/piconet"
SHORT = ["--set", "run.duration_s=1", "--set", "run.warmup_s=0.2", "--set", "run.replications=2"]
"""Little enough for the simulator in plain Python."""


def failure(code: int, *arguments: str) -> str:
    """Run a command that must end with *code* and say nothing on standard output; return its message."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


BAD_INPUT = [
    (["solve", "venugopal-2006/piconnet"], ["did you mean 'venugopal-2006/piconet'"]),
    (["simulate", NAME, "--set", "polling.limt=3"], ["polling.limt", "polling.limit"]),
    (["compare", NAME, "--set", "polling.limit=0"], ["[polling] limit = 0", "at least 1"]),
    (
        ["simulate", NAME, "--set", "link.quality_memory_s=0.5"],
        ["[link] quality_memory_s = 0.5", "removed", "only 0.0, its default, is still read"],
    ),
    (["simulate", NAME, "--threads", "0"], ["--threads"]),
    (["compar", NAME], ["compar", "compare"]),
    (["models", "venugopal-2006/none-such-at-all"], ["no scenario file or model"]),
    (["figures", "venugopal-2006/fig_6_99"], ["did you mean 'venugopal-2006/fig_6_9'"]),
    (["figures", "johansson-2000/2", "--format", "gif"], ["--format gif", "png, svg, pdf"]),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT)
def test_bad_input_is_exit_2_with_a_message(engines, arguments, words):
    message = failure(2, *arguments)
    for word in words:
        assert word in message


CHOOSING = ["dimension", NAME, "--choose", "polling.limit=1..4", "--maximize", "goodput_kbps"]
ANSWERING = [[command, NAME, "--out"] for command in ("solve", "simulate", "compare")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("result.zarr", "must end in {ends}"),
        ("result", "must end in {ends}"),
        ("folder.nc", "is a folder"),
        ("missing/result.nc", "there is no folder"),
        ("file.txt/result.nc", "there is no folder"),
    ],
)
@pytest.mark.parametrize("command", [*ANSWERING, [*CHOOSING, "--out"], [*CHOOSING, "--plot"]])
def test_files_are_checked_before_anything_is_computed(engines, tmp_path, command, name, words):
    suffix, ends = (".svg", ".png") if command[-1] == "--plot" else (".nc", ".nc (netCDF) or .csv")
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "file.txt").touch()
    engines.network.solve = engines.simulator.simulate = None  # a call would be a TypeError
    message = failure(2, *command, str(tmp_path / name.replace(".nc", suffix)))
    assert command[-1] in message and words.format(ends=ends) in message
    assert sorted(os.listdir(tmp_path)) == ["file.txt", f"folder{suffix}"]


@pytest.mark.parametrize("name", ["result.nc", "result.csv"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(engines, tmp_path, monkeypatch, name):
    target = tmp_path / name
    target.write_text("older")

    def full_disk(source: object, destination: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("btqueue.files.os.replace", full_disk)
    result = CliRunner().invoke(app, ["solve", NAME, "--out", str(target), "--force"])
    assert result.exit_code == 2 and "goodput" in result.stdout  # the answer is not lost with its file
    assert "No space left on device" in result.stderr
    assert target.read_text() == "older"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("error", ["NoConvergence", "ImpossibleAnswer"])
@pytest.mark.parametrize("command", ["solve", "compare"])
def test_a_solver_without_an_answer_is_exit_3(engines, tmp_path, command, error):
    def solve(scenario: object) -> None:
        raise getattr(engines.network, error)("goodput 602.8, but its window allows 52.75 kbit/s")

    engines.network.solve = solve
    out = tmp_path / "result.nc"
    assert "602.8, but its window allows 52.75" in failure(3, command, NAME, "--json", "--out", str(out))
    assert not out.exists()


def test_a_violated_invariant_is_exit_3(engines):
    def simulate(*_: object, **__: object) -> None:
        raise engines.simulator.InvariantViolated("packets of flow 0 are not conserved")

    engines.simulator.simulate = simulate
    assert "not conserved" in failure(3, "simulate", NAME, "--json")


def test_an_unexpected_error_keeps_its_trace(engines):
    engines.network.solve = lambda scenario: {}["a bug"]
    result = CliRunner().invoke(app, ["solve", NAME])
    assert isinstance(result.exception, KeyError)  # a bug must not look like bad input


def test_ctrl_c_during_compilation_is_not_lost(engines, monkeypatch, caplog):
    def compile_now(scenario: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # as LLVM does with an exception in a callback
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("btqueue.cli.engines.is_compiled", lambda: False)
    monkeypatch.setattr("btqueue.cli.engines.compile_now", compile_now)
    engines.simulator.simulate = None  # a call would be a TypeError
    message = failure(130, "simulate", NAME)
    assert "compiling the simulator, once for this version" in message
    assert "stopping as soon as the compilation is done" in caplog.text
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_a_simulation_without_a_trace(tmp_path):
    code = (
        "import sys\nfrom btqueue.cli import app\n"
        "app(['simulate', sys.argv[1], '--set', 'run.duration_s=1e6', '--json', '--out', sys.argv[2]])"
    )
    # The first piece of the run, thousands of which would follow, sends the signal to its own process.
    signalling = (
        "import os, signal, btqueue.simulator.engine as e, btqueue.simulator.replications as r\n"
        "e.EVENTS_A_PAUSE = 1000\n"
        "real, signals = r.advance, [signal.SIGINT]\n"
        "def advance(sim, until):\n"
        "    if signals: os.kill(os.getpid(), signals.pop())\n"
        "    return real(sim, until)\n"
        "r.advance = advance\n"
    )
    out = tmp_path / "result.nc"
    done = subprocess.run(
        [sys.executable, "-c", signalling + code, NAME, str(out)],
        capture_output=True, text=True, timeout=DEADLINE_S, env=UNCOMPILED,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert done.stdout == ""
    assert done.stderr == "btqueue: interrupted\n"
    assert not out.exists()


def test_standard_output_of_a_real_run_is_one_json_object():
    done = subprocess.run(
        [*COMMAND, "simulate", NAME, "--json", *SHORT],
        capture_output=True, text=True, timeout=DEADLINE_S, env=UNCOMPILED,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # so short a run is warned of before and after, but never on standard output
    spoken = "btqueue: hint: ", "btqueue: the simulation warns: "
    assert all(line.startswith(spoken) for line in done.stderr.splitlines())
    assert json.loads(done.stdout)["simulate"]["replications"] == 2
