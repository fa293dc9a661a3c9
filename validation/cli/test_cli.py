"""The command line: what it prints, writes and imports. The engines are stand-ins of `conftest.py`."""

import csv
import inspect
import json
import os
import shlex
import stat
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import typer
import xarray as xr
from command_line import run
from commands import python
from thesis import thesis, thesis_of

import btqueue
from btqueue.cli import app
from btqueue.cli.options import TEXTS
from btqueue.scenario import NotBuiltYet, Problem, Scenario, describe, list_models
from btqueue.study import Estimate
from btqueue.study.tables import verdict, with_interval

NAME = "venugopal-2006/piconet"
LINK = "chen-2004/adaptive-1"
"""Answered without JAX."""


def shown(*words: str) -> str:
    return run(*words).stdout


def json_of(*arguments: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(shown(*arguments, "--json"), parse_constant=refuse)


def rows_of(file: str) -> list[dict[str, str]]:
    """Return the rows of a table that was written."""
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


BRIEF = ("--set", "run.duration_s=0.1", "--set", "run.warmup_s=0")
ENGINE = ["numpy", "pydantic", "scenarios", "scipy"]
SHOWN = sorted([*ENGINE, "rich"])


@pytest.mark.parametrize(
    ("arguments", "allowed", "shown"),
    [
        (["--help"], ["rich"], ("solve", "simulate", "compare", "models", "figures")),
        (["models"], ["pydantic"], ("venugopal-2006/piconet",)),
        (["models", "--json"], ["pydantic"], ('"models"',)),
        (["solve", LINK, "--json"], ENGINE, ('"solve"',)),
        (["solve", LINK], SHOWN, ("goodput", "not checked")),
        (["solve", LINK, "--no-check"], SHOWN, ("goodput", "usual error")),
        (["simulate", NAME, *BRIEF, "--json", "-q"], ENGINE, ('"simulate"',)),
    ],
)
def test_commands_import_only_modules_that_they_use(arguments, allowed, shown):
    """None needs a `Dataset`, which is what files hold; what does the work may take long to import."""
    heavy = ("numpy", "scipy", "scipy.stats", "jax", "numba", "xarray", "pandas", "dask", "pyarrow", "h5py")
    heavy += ("pydantic", "networkx", "sympy", "matplotlib", "rich", "distributed", "SALib")
    code = (
        "import sys\nfrom btqueue.cli import app\n"
        f"try: app({arguments})\nexcept SystemExit as end: assert not end.code\n"
        "sys.modules['scenarios'] = sys.modules.get('btqueue.scenario.scenario')\n"
        f"print(sorted(m for m in {(*heavy, 'scenarios')!r} if sys.modules.get(m)), file=sys.stderr)"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == str(allowed)
    for text in shown:
        assert text in done.stdout


def test_where_the_simulator_is_not_compiled_no_answer_waits_for_it(tmp_path):
    code = (
        f"import sys\nfrom btqueue.cli import app\ntry: app(['solve', '{LINK}'])\nexcept SystemExit: pass\n"
        "print('numba' in sys.modules, file=sys.stderr)"
    )
    done = python("-c", code, NUMBA_DISABLE_JIT="0", BTQUEUE_CACHE_DIR=str(tmp_path))
    *_, usual, checked = done.stdout.splitlines()
    assert usual.startswith("usual error") and done.stderr.strip() == "False"
    assert checked == "not checked: the simulator compiles once, about half a minute (--check)"


def test_an_answer_is_printed_before_it_is_checked_and_the_check_comes_last(engines):
    """A check that fails leaves the answer, which it came after. Of a confirmed answer doubts are told."""
    engines.simulator.simulate, simulate = Mock(side_effect=KeyboardInterrupt), engines.simulator.simulate
    ended = run("solve", NAME, code=130)
    assert "goodput" in ended.stdout and "confirmed" not in ended.stdout
    engines.simulator.simulate = simulate
    lines = shown("solve", NAME).splitlines()
    assert lines[-1] == "confirmed: goodput +1 % of the simulation"
    assert not any(line.startswith("usual error") for line in lines)
    solve = engines.network.solve
    engines.network.solve = lambda scenario: solve(scenario).assign_attrs(stands=False)
    words = "theory doubts this answer, a short simulation confirms it"
    assert shown("solve", NAME).splitlines()[-1] == f"{words}: goodput +1 % of the simulation"


def test_json_holds_the_check_of_an_answer(engines):
    found = json_of("solve", NAME)["solve"]["check"]
    assert found["verdict"] == "confirmed" and found["line"].startswith("confirmed: goodput +1 %")
    assert found["metrics"]["goodput_kbps"]["difference"] == pytest.approx(0.01)
    assert "check" not in json_of("solve", NAME, "--no-check")["solve"]
    engines.simulator.simulate = Mock(side_effect=NotBuiltYet(Problem("not simulated")))
    found = json_of("solve", NAME, "--check")["solve"]["check"]
    assert (found["verdict"], found["line"]) == ("not checked", "not checked: not simulated")


GROUP: Any = typer.main.get_command(app)


@pytest.mark.parametrize("name", GROUP.commands)
def test_every_command_shows_examples_that_can_be_typed(name):
    command = GROUP.commands[name]
    heading, *examples = (command.epilog or "").split("\n\n")
    assert heading == "Examples:" and examples
    for example in examples:
        program, typed, *arguments = shlex.split(example.partition(" > ")[0])
        assert (program, typed) == ("btqueue", name)
        with command.make_context(name, arguments, resilient_parsing=False) as context:
            for setting in context.params.get("set_") or ():
                thesis().with_sets([setting])


def test_every_text_of_an_option_belongs_to_a_parameter():
    commands = {one.callback.__name__: one.callback for one in app.registered_commands if one.callback}
    own = {name: set(inspect.signature(command).parameters) for name, command in commands.items()}
    assert set(TEXTS) == {"shared", *own}
    assert set(TEXTS["shared"]) <= set().union(*own.values())
    assert all(set(TEXTS[name]) <= {"examples", *parameters} for name, parameters in own.items())


def test_version_and_the_module_as_a_command():
    done = python("-m", "btqueue", "--version").stdout
    assert done == f"btqueue {btqueue.__version__}\n" == shown("--version")


def test_json_holds_only_what_was_run_and_null_where_there_is_no_interval(engines):
    for words in (("solve", NAME), ("simulate", NAME, "--set", "run.replications=1")):
        result = json_of(*words)
        assert list(result) == ["schema", "scenario", "hints", words[0], "provenance"]
    assert result["simulate"]["metrics"]["goodput_kbps"]["ci95"] is None


@pytest.mark.parametrize(
    ("mean", "ci95", "text"),
    [
        (151.234, 1.26, "151.2 ± 1.3"),
        (0.26861, 0.0108, "0.269 ± 0.011"),
        (12345.6, 78.9, "12346 ± 79"),
        (2.0, 0.0, "2 (no spread)"),
        (1e-9, 2e-10, "1e-09 ± 2.0e-10"),
        (3.14159, float("nan"), "3.142"),
        (float("nan"), float("nan"), "–"),
        (2.0, float("inf"), "2"),
        (49.82, 2.2e-14, "49.82 (no spread)"),
        (0.0, float("nan"), "0"),
        (123456.7, float("nan"), "123,457"),
    ],
)
def test_numbers_show_as_many_digits_as_the_interval_supports(mean, ci95, text):
    assert with_interval(Estimate(mean, ci95)) == text


def test_an_answer_is_outside_only_where_the_difference_matters():
    for model, mean, ci95, word in (
        (1.0, 0.99975, 0.0001, "within 1%"),  # fairness: no user would call this outside
        (1.0, 0.98, 0.001, "outside"),
        (1.0, 0.98, 0.05, "✓ inside"),
        (0.0, 0.01, 0.001, "outside"),
    ):
        assert verdict(model, mean, ci95, inside=abs(model - mean) <= ci95) == word


def test_models_are_listed_with_titles_and_printed():
    text = shown("models")
    assert all(name in text for name in list_models())
    assert "six peripherals, perfect radio" in text
    assert thesis_of(tomllib.loads(shown("models", NAME))).title.startswith("Venugopal 2006")
    assert set(json_of("models")["models"]) == set(list_models())
    schema = json.loads(shown("models", "--schema"))
    assert {"network", "polling", "run"} <= set(schema["properties"])


def test_comparison_as_csv_and_a_simulation_with_one_row_a_value(engines, tmp_path):
    compared, simulated = (str(tmp_path / name) for name in ("compared.csv", "simulated.csv"))
    shown("compare", NAME, "--out", compared)
    by_metric = {row["metric"]: row for row in rows_of(compared)}
    goodput = by_metric["goodput_kbps"]
    assert (goodput["unit"], float(goodput["model"]), goodput["inside"]) == ("kbit/s", 101, "True")
    assert by_metric["rtt_s"]["model"] == ""  # absent, not zero
    shown("simulate", NAME, "--set", "run.replications=2", "--out", simulated)
    rows = rows_of(simulated)
    assert list(rows[0]) == ["metric", "unit", "replication", "flow", "queue", "value"]
    assert len(rows) == 2 * (2 + 2 + 3 + 1)
    assert [row["value"] for row in rows if row["metric"] == "rtt_s"] == ["", "0.25", "", "0.25"]


@pytest.mark.parametrize("command", ["solve", "simulate", "compare"])
def test_netcdf_holds_result_scenario_and_provenance(engines, tmp_path, command):
    file = tmp_path / "result.nc"
    file.write_text("an older result")
    shown(command, NAME, "--out", str(file), "--force")
    assert os.listdir(tmp_path) == ["result.nc"]
    assert stat.S_IMODE(file.stat().st_mode) & stat.S_IRUSR
    with xr.open_dataset(file, engine="h5netcdf") as dataset:
        assert thesis_of(json.loads(dataset.attrs["scenario"])).polling.limit == 5
        assert dataset.attrs["provenance_btqueue"] == btqueue.__version__
        if command == "compare":
            assert dataset["inside"].dtype == bool and dataset.attrs["model_converged"] == 1
            assert json.loads(dataset.attrs["model_missing"])[0] == "rtt_s"
        else:
            assert float(dataset["goodput_kbps"].mean()) == {"solve": 101, "simulate": 100}[command]
            assert dataset["goodput_kbps"].attrs["units"] == "kbit/s"


def rich_result(scenario: Scenario, **attrs: object) -> xr.Dataset:
    """A simulation with metrics of links and queues, and a metric that was never observed."""
    of_flows = {"goodput_kbps": 50.0, "delay_s": np.nan, "rtt_p95_s": 0.5}
    variables = {
        **{name: (("replication", "flow"), np.full((4, 2), value)) for name, value in of_flows.items()},
        "polls_per_s": (("replication", "link"), np.arange(12.0).reshape(4, 3)),
        "slot_utilisation": ("replication", np.full(4, 0.5)),
    }
    coords = {"link_name": ("link", ["a", "b", "c"]), "measured_s": ("replication", np.full(4, 2.0))}
    known = {"events": 9, "warmup_s": 12.5, "warnings": ["short runs"]}
    return describe(xr.Dataset(variables, coords, {**known, **attrs}))


def test_links_and_a_warm_up_that_was_found(engines):
    engines.simulator.simulate = lambda scenario, **_: rich_result(scenario)
    text = shown("simulate", NAME, "--set", "run.warmup_s=auto")
    assert "4 replications of 480 s after 12.5 s (found by MSER-5)" in text
    assert "simulation warns: short runs" in text
    assert "message delay" not in text and "visits" not in text
    every = shown("simulate", NAME, "--all")
    assert "visits" in every and "round-trip time, 95 %" in every
    result = json_of("simulate", NAME)["simulate"]
    said = {"complete": True, "replications": 4, "warmup_s": 12.5, "warnings": ["short runs"]}
    assert said | {"links": ["a", "b", "c"]} == {key: result[key] for key in (*said, "links")}
    polls = result["metrics"]["polls_per_s"]
    assert (polls["per_link"], polls["mean"]) == ([4.5, 5.5, 6.5], 5.5)
    assert "delay_s" not in result["metrics"]


def stopped(*words: str) -> str:
    result = run(*words, code=130)
    assert result.stderr.splitlines()[-1] == "btqueue: interrupted: 4 of 10 replications"
    return result.stdout


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_an_interrupted_simulation_prints_and_writes_what_it_has_with_a_mark(engines, tmp_path, command):
    stop: Any = KeyboardInterrupt()  # stands for the simulator's exception
    stop.results = engines.as_results(rich_result(thesis(), complete=0, wanted=10, finished=4))
    engines.simulator.simulate = Mock(side_effect=stop)
    text = stopped(command, NAME, "--out", str(tmp_path / "a.nc"))
    assert "simulation: INTERRUPTED, 4 of 10 replications after 12.5 s" in text and "50" in text
    result = json.loads(stopped(command, NAME, "--json", "--out", str(tmp_path / "a.csv")))["simulate"]
    assert (result["complete"], result["interrupted"]) == (False, "4 of 10 replications")
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as dataset:
        assert dataset.attrs["interrupted"] == "4 of 10 replications"
    assert {row["interrupted"] for row in rows_of(f"{tmp_path}/a.csv")} == {"4 of 10 replications"}


def test_a_second_ctrl_c_stops_at_once():
    code = (
        "import os, signal, sys, time, btqueue.simulator.replications as r\n"
        "from btqueue.cli import app\n"
        "def advance(sim, until):\n"  # a thread that notices nothing
        "    for pause in (1, 1, 1000):\n"
        "        time.sleep(pause); os.kill(os.getpid(), signal.SIGINT)\n"
        "r.advance = advance\n"
        "app(['simulate', sys.argv[1], '--threads', '1'])"
    )
    done = python("-c", code, NAME)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "btqueue: interrupted\n"


def test_one_replication_as_trace_capture_and_series(tmp_path):
    pytest.importorskip("pyarrow")
    names = {"trace": "t.parquet", "pcap": "t.pcap", "series": "t.csv"}
    options = [part for option, name in names.items() for part in (f"--{option}", str(tmp_path / name))]
    without_dpkt = "import sys; sys.modules['dpkt'] = None; from btqueue.cli import app; app(sys.argv[1:])"
    short = ("--set", "run.duration_s=0.8", "--set", "run.warmup_s=0.2", "--at", "p1.2", "--step", "0.2")
    done = python("-c", without_dpkt, "simulate", NAME, *short, *options, "--json")
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["files"]
    assert {name: Path(facts["path"]).name for name, facts in files.items()} == names
    assert files["pcap"]["host"] == "p1.2"
    assert files["series"]["steps"] == 5
    import pyarrow.parquet

    assert pyarrow.parquet.read_metadata(tmp_path / "t.parquet").num_rows == files["trace"]["events"] > 0
    assert (tmp_path / "t.pcap").stat().st_size > 1000
    trips = [row for row in rows_of(f"{tmp_path}/t.csv") if (row["metric"], row["flow"]) == ("srtt_s", "1")]
    assert trips[-1]["time"] == "1.0"
    assert sorted(os.listdir(tmp_path)) == sorted(names.values())
