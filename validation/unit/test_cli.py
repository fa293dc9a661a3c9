"""The command line: what it prints, writes and imports. The engines are stand-ins of `conftest.py`."""

import csv
import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import xarray as xr
from typer.testing import CliRunner

import btqueue
from btqueue.cli import app
from btqueue.cli.tables import number, with_interval
from btqueue.scenario import Scenario, list_models
from btqueue.study import Estimate

NAME = "venugopal-2006/piconet"
ROOT = Path(btqueue.__file__).parents[1]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def json_of(*arguments: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(run(*arguments, "--json"), parse_constant=refuse)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=60)


def test_help_imports_nothing_that_computes():
    heavy = "numpy, scipy, jax, numba, xarray, pydantic, matplotlib"
    code = (
        "import sys\nfrom btqueue.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit as end: assert not end.code\n"
        f"print([m for m in {heavy.split(', ')!r} if m in sys.modules], file=sys.stderr)"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"
    for command in ("solve", "simulate", "compare", "models", "figures"):
        assert command in done.stdout


def test_version_and_the_module_as_a_command():
    done = python("-m", "btqueue", "--version")
    assert done.stdout == f"btqueue {btqueue.__version__}\n"
    assert run("--version") == done.stdout


def test_compare_as_json_has_every_part(engines):
    result = json_of("compare", NAME, "--set", "run.replications=3", "--set", "run.seed=5")
    assert list(result) == ["scenario", "solve", "simulate", "provenance"]
    assert Scenario.from_dict(result["scenario"]).run.replications == 3
    assert result["solve"]["converged"] is True
    assert result["solve"]["residual"] == 1e-10
    assert result["solve"]["warnings"] == ["rough"]
    assert result["solve"]["metrics"]["goodput_kbps"] == {"mean": 101.0, "per_flow": [101.0, 101.0]}
    assert result["solve"]["metrics"]["cycle_s"] == {"mean": 0.03}
    assert "delay_s" not in result["solve"]["metrics"]
    simulated = result["simulate"]
    assert (simulated["replications"], simulated["events"]) == (3, 3702)
    goodput = simulated["metrics"]["goodput_kbps"]
    assert goodput["mean"] == 100
    assert goodput["ci95"] == pytest.approx(4.302652729911275 / 3**0.5)
    assert simulated["metrics"]["rtt_s"]["per_flow"] == [None, 0.25]
    assert simulated["metrics"]["queue_packets"]["per_queue"]["uplink"]["mean"] == pytest.approx(1)
    assert result["provenance"]["btqueue"] == btqueue.__version__
    assert result["provenance"]["seed"] == 5


def test_json_holds_only_what_was_run_and_null_where_there_is_no_interval(engines):
    assert list(json_of("solve", NAME)) == ["scenario", "solve", "provenance"]
    result = json_of("simulate", NAME, "--set", "run.replications=1")
    assert list(result) == ["scenario", "simulate", "provenance"]
    assert result["simulate"]["metrics"]["goodput_kbps"]["ci95"] is None


def test_warnings_of_the_model_go_to_standard_error_unless_quiet(engines):
    loud = CliRunner().invoke(app, ["solve", NAME, "--json"])
    assert "the model warns: rough" in loud.stderr
    assert CliRunner().invoke(app, ["solve", NAME, "--json", "--quiet"]).stderr == ""


def test_tables_show_both_sides_and_how_they_were_made(engines):
    text = run("compare", NAME)
    assert text.startswith(f"{NAME}: Venugopal 2006, section 6.1.1")
    rows = {line.split("  ")[1].strip(): line for line in text.splitlines() if line.startswith("  ")}
    assert all(word in rows["goodput"] for word in ("kbit/s", "101", "100.0 ± 2.2", "+1.0%", "✓ inside"))
    assert "outside" in rows["queue length, uplink"]
    assert "no model" in rows["round-trip time"]
    assert "not simulated" in rows["polling cycle"]
    for part in (
        "12,340 events",
        "10 replications of 480 s",
        "stand-in",
        "9 iterations",
        "model warns: rough",
    ):
        assert part in text
    assert "101" in run("solve", NAME)
    assert "100.0 ± 2.2" in run("simulate", NAME)
    assert "no interval" in run("compare", NAME, "--set", "run.replications=1")


@pytest.mark.parametrize(
    ("mean", "ci95", "text"),
    [
        (151.234, 1.26, "151.2 ± 1.3"),
        (0.26861, 0.0108, "0.269 ± 0.011"),
        (12345.6, 78.9, "12346 ± 79"),
        (2.0, 0.0, "2 ± 0"),
        (1e-9, 2e-10, "1e-09 ± 2.0e-10"),
        (3.14159, float("nan"), "3.142"),
        (float("nan"), float("nan"), "–"),
    ],
)
def test_numbers_show_as_many_digits_as_the_interval_supports(mean, ci95, text):
    assert with_interval(Estimate(mean, ci95)) == text


def test_large_and_zero_numbers():
    assert (number(0.0), number(123456.7)) == ("0", "123,457")


def test_models_are_listed_with_titles_and_printed():
    text = run("models")
    assert all(name in text for name in list_models())
    assert "six peripherals, perfect radio" in text
    assert Scenario.from_dict(tomllib.loads(run("models", NAME))).title.startswith("Venugopal 2006")
    assert set(json_of("models")["models"]) == set(list_models())
    schema = json.loads(run("models", "--schema"))
    assert {"network", "polling", "run"} <= set(schema["properties"])


def test_a_scenario_file_of_the_user(engines, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('title = "[mine]"\n[network]\nperipherals = 3\n')
    assert len(json_of("solve", str(file))["solve"]["metrics"]["goodput_kbps"]["per_flow"]) == 3
    assert run("solve", str(file)).startswith(f"{file}: [mine]")  # brackets are no markup


def test_comparison_as_csv(engines, tmp_path):
    file = tmp_path / "result.csv"
    run("compare", NAME, "--out", str(file))
    with file.open() as lines:
        rows = {row["metric"]: row for row in csv.DictReader(lines)}
    assert rows["goodput_kbps"]["unit"] == "kbit/s"
    assert (float(rows["goodput_kbps"]["model"]), rows["goodput_kbps"]["inside"]) == (101, "True")
    assert rows["rtt_s"]["model"] == ""  # absent, not zero


def test_simulation_as_csv_has_one_row_a_value(engines, tmp_path):
    file = tmp_path / "result.csv"
    run("simulate", NAME, "--set", "run.replications=2", "--out", str(file))
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["metric", "unit", "replication", "flow", "queue", "value"]
    assert len(rows) == 2 * (2 + 2 + 3 + 1)
    assert [row["value"] for row in rows if row["metric"] == "rtt_s"] == ["", "0.25", "", "0.25"]


@pytest.mark.parametrize("command", ["solve", "simulate", "compare"])
def test_netcdf_holds_result_scenario_and_provenance(engines, tmp_path, command):
    file = tmp_path / "result.nc"
    file.write_text("an older result")
    run(command, NAME, "--out", str(file))
    assert os.listdir(tmp_path) == ["result.nc"]
    assert stat.S_IMODE(file.stat().st_mode) & stat.S_IRUSR
    with xr.open_dataset(file, engine="h5netcdf") as dataset:
        assert Scenario.from_dict(json.loads(dataset.attrs["scenario"])).polling.limit == 5
        assert dataset.attrs["provenance_btqueue"] == btqueue.__version__
        if command == "compare":
            assert dataset["inside"].dtype == bool
            assert json.loads(dataset.attrs["model_missing"])[0] == "rtt_s"
            assert dataset.attrs["model_converged"] == 1
        else:
            assert float(dataset["goodput_kbps"].mean()) == {"solve": 101, "simulate": 100}[command]
            assert dataset["goodput_kbps"].attrs["units"] == "kbit/s"


def test_figures_are_listed():
    text = run("figures")
    assert "venugopal-2006/fig_6_1" in text
    assert "two peripherals on a perfect radio" in text
