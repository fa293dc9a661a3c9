"""The simulator uncompiled: a second copy of its modules whose functions are plain Python.

Compiling each small function for a unit test would take minutes. numba decides when a function is decorated,
so importing the package afresh with compilation off gives the same source as plain functions; the compiled
copy that other tests use stays as it is. That both copies compute the same is checked in `crosscheck`.
"""

import importlib
import pkgutil
import sys
from collections import ChainMap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.core import config

from .tcp_sender_calls import Sender

PACKAGE = "btqueue.simulator"


def take_modules() -> dict:
    names = [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture(scope="session")
def plain():
    """The modules of the simulator, uncompiled, by their last names: `plain.sender.on_ack(...)`.

    `plain.records` has the names of all modules of that sub-package.
    """
    compiled_copy = take_modules()
    settings: Any = config  # numba fills this module at run time
    before = settings.DISABLE_JIT
    settings.DISABLE_JIT = 1
    try:
        package = importlib.import_module(PACKAGE)
        for module in pkgutil.walk_packages(package.__path__, PACKAGE + "."):
            importlib.import_module(module.name)
    finally:
        settings.DISABLE_JIT = before
        plain_copy = take_modules()
        sys.modules.update(compiled_copy)
        # the package attribute of the parent package must point to the compiled copy again
        if PACKAGE in compiled_copy:
            vars(sys.modules["btqueue"])["simulator"] = compiled_copy[PACKAGE]
        else:
            vars(sys.modules["btqueue"]).pop("simulator", None)
    assert not hasattr(plain_copy[PACKAGE + ".engine"].advance, "py_func"), "the copy is compiled"
    modules = {name: module for name, module in plain_copy.items() if not hasattr(module, "__path__")}
    records = [vars(module) for name, module in modules.items() if name.startswith(PACKAGE + ".records.")]
    by_last_name = {name.rpartition(".")[2]: module for name, module in modules.items()}
    assert len(by_last_name) == len(modules), "two modules have the same last name"
    return SimpleNamespace(**by_last_name, records=SimpleNamespace(**ChainMap(*records)))


@pytest.fixture
def sender(plain):
    """Makes a TCP sender in any state: `sender(cwnd=4.0, in_flight=4)`."""
    return lambda **state: Sender(plain, **state)


@pytest.fixture(autouse=True)
def wrapping_arithmetic():
    """Random numbers are made with 64-bit words that wrap around; numpy would warn of it in plain Python."""
    with np.errstate(over="ignore"):
        yield
