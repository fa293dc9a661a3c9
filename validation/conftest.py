"""Settings of all tests."""

import importlib
import os
import pkgutil
import shutil
import signal
import sys
from collections import ChainMap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
import xarray as xr

from btqueue.cli.engines import keep_compiled_models
from btqueue.scenario import Scenario, describe
from btqueue.scenario.metrics import Results, Variable
from btqueue.scenario.topology import topology

# Fixed examples, as seeds are fixed everywhere; no deadline, because the first example pays for compiling.
hypothesis.settings.register_profile("validation", derandomize=True, deadline=None)
hypothesis.settings.load_profile("validation")

# What JAX compiles for a test is read from disk in the next run.
keep_compiled_models()

# A shell ignores Ctrl-C in what it starts in the background, and so would the tests of interruptions.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Let the summary say why tests were skipped, as the journeys are without a browser."""
    config.option.reportchars += "s"


@pytest.fixture(scope="module")
def chromium():
    """The machine's browser, or the program that BTQUEUE_CHROMIUM names, which then must be there."""
    from playwright.sync_api import sync_playwright

    named = os.environ.get("BTQUEUE_CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        without = pytest.fail if named else pytest.skip
        without(
            f"no Chromium ({', '.join(names)}): apt-get install chromium, or name one in BTQUEUE_CHROMIUM"
        )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


QUEUES = ["token_buffer", "uplink", "downlink"]


NoConvergence, ImpossibleAnswer, NotSampled, InvariantViolated = (
    type(name, (RuntimeError,), {})
    for name in ("NoConvergence", "ImpossibleAnswer", "NotSampled", "InvariantViolated")
)
"""Stand for the exceptions of the engines."""


def solve(scenario: Scenario) -> xr.Dataset:
    """Stand for the solver: as complete as the command line needs."""
    flows = len(topology(scenario).flows)
    attrs = {
        "converged": True,
        "residual": 1e-10,
        "iterations": 9,
        "method": "stand-in",
        "warnings": ["rough"],
    }
    variables = {
        "goodput_kbps": ("flow", np.full(flows, 101.0)),
        "delay_s": ("flow", np.full(flows, np.nan)),
        "queue_packets": ("queue", [1.0, 2.0, 3.0]),
        "cycle_s": ((), 0.03),
    }
    return describe(xr.Dataset(variables, {"flow": np.arange(1, flows + 1), "queue": QUEUES}, attrs))


def simulate(
    scenario: Scenario, *, threads: int | None = None, progress: object = None, device: str = "cpu"
) -> xr.Dataset:
    """Stand for the simulator: goodputs 100 plus the number of the replication, centred."""
    runs, flows = scenario.run.replications, len(topology(scenario).flows)
    noise = np.arange(runs, dtype=float) - (runs - 1) / 2
    rtt = np.full((runs, flows), 0.25)
    rtt[:, 0] = np.nan if flows > 1 else 0.25  # a flow without a sample
    variables = {
        "goodput_kbps": (("replication", "flow"), 100 + noise[:, None] * np.ones(flows)),
        "rtt_s": (("replication", "flow"), rtt),
        "queue_packets": (("replication", "queue"), np.ones((runs, 3)) + noise[:, None] / 100),
        "fairness": ("replication", np.ones(runs)),
    }
    coords = {"replication": np.arange(runs), "flow": np.arange(1, flows + 1), "queue": QUEUES}
    attrs = {"answered_by": "simulation", "events": 1234 * runs, "seed": scenario.run.seed}
    attrs |= {"relative_half_width": np.inf, "finished": runs, "wanted": runs, "warnings": []}
    return describe(xr.Dataset(variables, coords, attrs))


def as_results(dataset: xr.Dataset) -> Results:
    """Return a dataset as an engine gives it within the package."""
    every = {
        str(name): Variable(tuple(map(str, one.dims)), one.values, one.attrs)
        for name, one in dataset.variables.items()
    }
    coords = {name: one for name, one in every.items() if name in dataset.coords}
    return Results({name: every[name] for name in every.keys() - coords.keys()}, coords, dataset.attrs)


def of_theory(dataset: xr.Dataset) -> Results:
    """Return a dataset as theory gives it; its answer stands unless it says otherwise."""
    about = {"answered_by": "theory", "stands": True, "why": ()}
    return as_results(dataset.assign_attrs(about | dataset.attrs))


class StandIn(ModuleType):
    """A module whose engine may be set to any function that returns a dataset; it returns results then."""

    solve: Any
    simulate: Any

    def __setattr__(self, name: str, value: Any) -> None:
        """Turn the datasets of an engine into results."""
        if name == "solve":
            super().__setattr__(name, lambda scenario, sampling=True: of_theory(value(scenario)))
        elif name == "simulate":
            super().__setattr__(name, lambda *given, most=0, **named: as_results(value(*given, **named)))
        else:
            super().__setattr__(name, value)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return an empty folder, the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder in which answers and claims are kept; compiled code stays where it is."""
    folder = tmp_path_factory.mktemp("kept")

    def cache_folder(*names: str) -> Path:
        place = folder.joinpath(*names)
        place.mkdir(parents=True, exist_ok=True)
        return place

    for module in ("figures.points", "figures.work", "report.judging"):
        monkeypatch.setattr(f"btqueue.reproduction.{module}.cache_folder", cache_folder)
    return folder


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch, kept: Path) -> SimpleNamespace:
    """Put stand-ins in the engines' places; their answers are never kept among those of the real engines."""
    import btqueue.cli.engines
    import btqueue.network.solve  # imported later, it would take the place of the stand-in's function

    network, simulator = StandIn("btqueue.network"), StandIn("btqueue.simulator")
    vars(network).update(
        NoConvergence=NoConvergence, ImpossibleAnswer=ImpossibleAnswer, NotSampled=NotSampled
    )
    vars(simulator).update(InvariantViolated=InvariantViolated)
    network.solve, simulator.simulate = solve, simulate
    for part in (network, simulator):  # what they cover is asked of the real ones
        part.__path__ = [str(Path(btqueue.__file__).parent / part.__name__.rpartition(".")[2])]
    monkeypatch.setitem(sys.modules, "btqueue.network", network)
    monkeypatch.setitem(sys.modules, "btqueue.simulator", simulator)
    monkeypatch.setattr(btqueue.cli.engines, "is_compiled", lambda: True)
    return SimpleNamespace(network=network, simulator=simulator, as_results=as_results)


PACKAGE = "btqueue.simulator"


def take_modules() -> dict:
    names = [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture(scope="session")
def plain():
    """The modules of the simulator, uncompiled, by their last names: `plain.sender.on_ack(...)`.

    `plain.records` has the names of all modules of that sub-package. Whether entry points are compiled is
    decided when they are decorated: the package is imported afresh with compilation off. The compiled copy of
    other tests stays.
    """
    compiled_copy = take_modules()
    before = os.environ.get("NUMBA_DISABLE_JIT", "0")
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    try:
        package = importlib.import_module(PACKAGE)
        for module in pkgutil.walk_packages(package.__path__, PACKAGE + "."):
            importlib.import_module(module.name)
    finally:
        os.environ["NUMBA_DISABLE_JIT"] = before
        plain_copy = take_modules()
        sys.modules.update(compiled_copy)
        # the package attribute of the parent package must point to the compiled copy again
        vars(sys.modules["btqueue"]).pop("simulator", None)
        if PACKAGE in compiled_copy:
            vars(sys.modules["btqueue"])["simulator"] = compiled_copy[PACKAGE]
    assert not hasattr(plain_copy[PACKAGE + ".engine"].advance, "function"), "the copy is compiled"
    modules = {name: module for name, module in plain_copy.items() if not hasattr(module, "__path__")}
    records = [vars(module) for name, module in modules.items() if name.startswith(PACKAGE + ".records.")]
    by_last_name = {name.rpartition(".")[2]: module for name, module in modules.items()}
    assert len(by_last_name) == len(modules), "two modules have the same last name"
    return SimpleNamespace(**by_last_name, records=SimpleNamespace(**ChainMap(*records)))
