"""The event loop on a GPU computes what it computes on the CPU.

numba's CUDA simulator plays the kernel in Python, where the simulator's functions are those of the CPU too:
everything must be equal to the last bit. `-m long` compares a real GPU, if there is one.
"""

import json
from typing import Any

import numpy as np
import pytest
from commands import python

import btqueue as bt
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.gpu import runs as gpu
from btqueue.simulator.records.arrays import ALIGNMENT, FIELDS, State, pack

SCENARIOS = (
    {"traffic__source": "greedy", "flow_control__enabled": False},
    {"network__peripherals": 4, "radio__model": "gilbert-elliott", "traffic__load_kbps": 150},
)
SHORT = {"run__duration_s": 0.6, "run__warmup_s": 0.2, "run__replications": 2}

PLAY = """
import json, sys
import btqueue as bt
from btqueue.simulator.construction import state
from btqueue.simulator.gpu import runs as gpu
from btqueue.simulator.construction.state import grow

grown = []

def watched(sim):
    grown.append(1)
    return grow(sim)

gpu.grow = watched
state.FIRST_POOL = 1  # pools run short again and again
for changes in json.loads(sys.argv[1]):
    dataset = bt.simulate(bt.load("venugopal-2006/piconet").with_(**changes), device="gpu")
    print(json.dumps({
        "events": dataset.attrs["events"],
        "grown": len(grown),
        "metrics": {name: [float(x).hex() for x in dataset[name].values.ravel()] for name in dataset},
    }))
    grown.clear()
"""


def scenario(changes: dict) -> bt.Scenario:
    return bt.load("venugopal-2006/piconet").with_(**SHORT, **changes)


def play_on_gpu(**environment: str) -> list[dict]:
    # threads of the CUDA simulator do not know that random numbers may wrap around
    arguments = ("-W", "ignore::RuntimeWarning", "-c", PLAY)
    scenarios = json.dumps([{**SHORT, **changes} for changes in SCENARIOS])
    done = python(*arguments, scenarios, cwd=None, **{"NUMBA_DISABLE_JIT": "0"} | environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def on_cpu() -> list:
    return [bt.simulate(scenario(changes), threads=1) for changes in SCENARIOS]


@pytest.mark.parametrize("jit", ["0", pytest.param("1", marks=pytest.mark.long)])
def test_simulated_gpu_equals_the_cpu_to_the_last_bit(on_cpu, jit):
    """With compiled parts, and in plain Python, which computes what is compiled."""
    played = play_on_gpu(NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT=jit)
    assert len(played) == len(on_cpu)
    for result, dataset in zip(played, on_cpu, strict=True):
        assert result["events"] == dataset.attrs["events"] > 100
        assert result["grown"] > 3  # replications stopped for space and went on
        assert set(result["metrics"]) == set(dataset)
        for name, values in result["metrics"].items():
            assert values == [float(value).hex() for value in dataset[name].values.ravel()], name


@pytest.mark.long
def test_real_gpu_equals_the_cpu(on_cpu):
    try:
        gpu.open_gpu()
    except gpu.GpuUnavailable as error:
        pytest.skip(str(error))
    greedy, fading = play_on_gpu()
    assert greedy["events"] == on_cpu[0].attrs["events"]
    for name, values in greedy["metrics"].items():
        assert values == [float(value).hex() for value in on_cpu[0][name].values.ravel()], name
    # log and exp may differ in the last place, which changes a drawn nanosecond once in 1e8 draws
    assert fading["events"] == on_cpu[1].attrs["events"]


def test_without_a_gpu_the_error_says_what_to_do():
    program = """
import btqueue as bt
from btqueue.simulator.gpu.runs import GpuUnavailable
try:
    bt.simulate(bt.load("venugopal-2006/piconet"), device="gpu")
except GpuUnavailable as error:
    print(error)
"""
    done = python("-c", program, CUDA_VISIBLE_DEVICES="", NUMBA_ENABLE_CUDASIM="0")
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout or "no CUDA device was found" in done.stdout


def test_an_unknown_device_is_refused():
    unknown: Any = "tpu"
    with pytest.raises(ValueError, match='"cpu" or "gpu"'):
        bt.simulate(scenario({}), device=unknown)


def test_the_cpu_never_imports_the_cuda_target():
    program = """
import sys
import btqueue as bt
from btqueue.simulator import replications
print([name for name in sys.modules if name.startswith("numba.cuda") or "gpu" in name])
"""
    done = python("-c", program)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_packing_keeps_every_array():
    sim = new_state(scenario({"radio__model": "gilbert-elliott"}), 1)
    packed = pack(sim.arrays())
    copy = State(packed)
    for name, before in sim.arrays().items():
        array = getattr(copy, name)
        assert array.dtype == FIELDS[name][0]
        assert array.shape == before.shape
        assert np.array_equal(array, before), name
        assert array.ctypes.data % ALIGNMENT == packed.block.ctypes.data % ALIGNMENT
    copy.clock[0].now = 123
    assert State(packed).clock[0].now == 123  # views, no copies
    assert sim.clock[0].now == 0
    assert not np.shares_memory(packed.block, sim.timers)
