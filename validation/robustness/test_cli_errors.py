"""How commands fail: exit code, one clear message, no trace, nothing on standard output or on disk."""

import contextlib
import os
import shlex
import signal
import sys

import pytest
from command_line import failure, run

NAME = "venugopal-2006/piconet"


SWEEP = f"sweep {NAME} --over polling.limit=1..3"
CHAIN = "sensitivity chen-2004/adaptive-1"
CHOOSING = f"dimension {NAME} --choose polling.limit=1..4 --maximize goodput_kbps"
CHECK = f"check theirs.csv --scenario {NAME}"
MORE = ("traffic.load_kbps", "run.seed", "run.replications")
FIGURE = "figures venugopal-2006/fig_6_1"
BAD_INPUT = [
    ("solve venugopal-2006/piconnet", "did you mean 'venugopal-2006/piconet'"),
    (f"simulate {NAME} --set polling.limt=3", "polling.limt | polling.limit"),
    (f"compare {NAME} --set polling.limit=0", "[polling] limit = 0 | at least 1"),
    (f"simulate {NAME} --set link.quality_memory_s=0.5", "unknown key"),
    (f"simulate {NAME} --threads 0", "--threads"),
    (f"compar {NAME}", "compar | compare"),
    ("models venugopal-2006/none-such-at-all", "no scenario file or model"),
    ("solve none-such.toml", '"none-such.toml": btqueue models lists the models'),
    (f"simulate {NAME} --pcap t.pcap --at p1.3", "did you mean 'p1.2'"),
    (f"simulate {NAME} --pcap t.pcap --at zzz", "the nodes are c1, p1.1, p1.2"),
    (f"simulate {NAME} --at p1.1", "names the host of --pcap"),
    (f"simulate {NAME} --trace t.csv", "must end in .parquet (Parquet)"),
    (f"simulate {NAME} --pcap missing/t.pcap", "there is no folder"),
    (f"simulate {NAME} --series t.pdf", ".png (picture)"),
    (f"simulate {NAME} --series t.csv --step 0", "must be above 0"),
    (f"simulate {NAME} --trace t.parquet --out t.nc", "play a single one"),
    (f"sweep {NAME}", "--over | polling.limit=1..25"),
    (f"sweep {NAME} --over polling.limt=1..3", "did you mean 'polling.limit'"),
    (f"{SWEEP} --metric goodput", "did you mean goodput_kbps"),
    (f"{SWEEP} --out x.ncc", ".nc (netCDF) | did you mean x.nc"),
    (f"{SWEEP} --plot x.gif", "--plot x.gif | .png"),
    (f"solve {NAME} --out result.zarr", "--out | must end in .nc (netCDF) or .csv"),
    (f"compare {NAME} --out result", "--out | must end in .nc (netCDF) or .csv"),
    (f"simulate {NAME} --out theirs.csv/result.nc", "--out | there is no folder"),
    (f"{SWEEP} --out folder.nc", "--out | is a folder"),
    (f"{CHOOSING} --plot result", "--plot | must end in .png"),
    (f"{SWEEP} --cluster tcp://x:1 --threads 2", "--threads"),
    (f"{SWEEP} {' '.join(f'--over {key}=1,2' for key in MORE)} --plot x.png", "at most 3 keys"),
    (f"dimension {NAME} --maximize goodput_kbps --choose poling.limit=1..4", "polling.limit"),
    ("sensitivity", "name a SCENARIO"),
    (f"{CHAIN} --spread lots", "KEY=LOW..HIGH"),
    (f"{CHAIN} --method gradient", "'gradient' is not one of"),
    (f"{CHAIN} --samples 8", "go with the method sobol"),
    (f"{CHAIN} --method closed --out a.csv", "formulas are printed"),
    (f"{CHECK} --confidence 2", "--confidence 2: must be at least 0.5"),
    (f"{CHECK} --map x=goodput", 'did you mean "goodput_kbps"'),
    (f"{CHECK} --map x", "--map x: must be THEIRS=METRIC"),
    (f"{CHECK} --flow 3", "the scenario has flows 1 to 2"),
    (f"{CHECK} --out report.txt", "must end in .json (JSON) or .csv"),
    (f"{CHECK} --plot report.txt", "must end in .png"),
    (f"{CHECK} --set polling.limt=3", "polling.limit"),
    ("figures venugopal-2006/6.99", "did you mean 'venugopal-2006/fig_6_"),
    ("figures venugopal-2006/2.1", "figure 2.1 of venugopal-2006 is a drawing, not a result"),
    ("figures venugopl-2006/6.1", "did you mean 'venugopal-2006/fig_6_1'?"),
    ("figures --all --paper venugopal", "did you mean 'venugopal-2006'?"),
    (f"{FIGURE} --all", "name a figure, or draw --all"),
    (f"{FIGURE} --out theirs.csv", "is no folder"),
    (f"{FIGURE} --format gif", "--format | 'gif' is not one of 'png'"),
    ("validate --paper venugopal", "did you mean 'venugopal-2006'"),
    ("validate --claims goodput-5", "no such claim; did you mean 'goodput-"),
    ("validate --paper chen-2004 --claims goodput-4", "no such claim"),
    ("validate --out theirs.csv/in/it", "cannot be made"),
    (f"emulate {NAME} --exec 'no-such-program --fast'", "'no-such-program --fast': there is no such program"),
    (f"""emulate {NAME} --exec "sh -c 'echo" """, "No closing quotation"),
    (f"emulate {NAME} --flow 3", "--flow 3: the scenario has 2 active flows"),
    (f"emulate {NAME} --duration 0", "--duration 0: must be above 0"),
    (f"emulate {NAME} --pcap out.txt", "must end in .pcap"),
    ("explore --set polling.limit=0", "[polling] limit = 0"),
]


@pytest.mark.parametrize(("line", "words"), BAD_INPUT)
def test_bad_input_is_exit_2_with_a_message_before_anything_is_computed(engines, here, line, words):
    (here / "theirs.csv").write_text("metric,value\nrtt_s,0.2\n", "utf-8")
    (here / "folder.nc").mkdir()
    engines.network.solve = engines.simulator.simulate = None  # a call would be a TypeError
    message = failure(*shlex.split(line))
    assert all(word in message for word in words.split(" | ")), message
    assert sorted(os.listdir()) == ["folder.nc", "theirs.csv"]


@pytest.mark.parametrize(
    ("package", "line", "extra"),
    [
        ("pyarrow", f"simulate {NAME} --trace t.parquet", "trace"),
        ("uvicorn", "explore", "explore"),
        ("distributed", f"{SWEEP} --cluster tcp://x:1", "cluster"),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    engines, here, monkeypatch, package, line, extra
):
    monkeypatch.setitem(sys.modules, package, None)
    message = failure(*shlex.split(line))
    assert f"pip install 'btqueue[{extra}]'" in message and package in message
    assert os.listdir() == []


@pytest.mark.parametrize("error", ["NoConvergence", "ImpossibleAnswer"])
@pytest.mark.parametrize("command", ["solve", "compare"])
def test_a_solver_without_an_answer_is_exit_3(engines, tmp_path, command, error):
    def solve(scenario: object) -> None:
        raise getattr(engines.network, error)("goodput 602.8, but its window allows 52.75 kbit/s")

    engines.network.solve = solve
    out = tmp_path / "result.nc"
    message = failure(command, NAME, "--json", "--out", out, code=3)
    assert "602.8, but its window allows 52.75" in message
    assert not out.exists()


def test_a_violated_invariant_is_exit_3(engines):
    def simulate(*_: object, **__: object) -> None:
        raise engines.simulator.InvariantViolated("packets of flow 0 are not conserved")

    engines.simulator.simulate = simulate
    assert "not conserved" in failure("simulate", NAME, "--json", code=3)


def test_an_unexpected_error_keeps_its_trace(engines):
    engines.network.solve = lambda scenario: {}["a bug"]
    with pytest.raises(KeyError):  # a bug must not look like bad input
        run("solve", NAME, catch_exceptions=False)


def test_ctrl_c_during_compilation_is_not_lost(engines, monkeypatch, caplog):
    def compile_now(scenario: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # as LLVM does with an exception in a callback
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("btqueue.cli.engines.is_compiled", lambda: False)
    monkeypatch.setattr("btqueue.cli.engines.compile_now", compile_now)
    engines.simulator.simulate = None  # a call would be a TypeError
    message = failure("simulate", NAME, code=130)
    assert "compiling the simulator, once for this version" in message
    assert "stopping as soon as the compilation is done" in caplog.text
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
