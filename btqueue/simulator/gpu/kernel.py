"""The event loop compiled for CUDA: one thread of the GPU plays one replication.

Needs numba's CUDA target, so only `runs.py` imports this module, and only when a GPU is asked for. numba-cuda
compiles the simulator's own functions for the GPU where the kernel calls them: there is no second source.

Under numba's CUDA simulator (`NUMBA_ENABLE_CUDASIM=1`) the kernel is plain Python, "the GPU" is the memory of
this process, and the kernel gets `State` values instead of addresses.
"""

import operator
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from inspect import isfunction
from typing import Any

import numpy as np
from llvmlite import ir
from numba import NumbaPerformanceWarning, types
from numba import cuda as numba_cuda
from numba.core import config

from btqueue.simulator import engine
from btqueue.simulator.machinery.code_cache import code_folder
from btqueue.simulator.machinery.inside_numba import for_numba, known, separate_roundings
from btqueue.simulator.machinery.numba_cache import parts
from btqueue.simulator.machinery.state_type import STATE_TYPE
from btqueue.simulator.records.arrays import FIELDS, WORDS, Packed, State

cuda: Any = numba_cuda
settings: Any = config
"""numba's settings, whose names appear only at run time."""
SIMULATED = bool(settings.ENABLE_CUDASIM)
"""Whether numba plays the GPU itself, in Python."""
THREADS_A_BLOCK = 1
"""Replications take different branches, and the threads of a warp wait for each other at every branch: each
replication gets a separate warp."""


def address_of_state(_context: Any, tables: types.Type, _replication: types.Type) -> Any:
    """Tell numba how to find the state of a replication in `tables`, where one table follows the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        words = ir.Constant(ir.IntType(64), len(FIELDS) * WORDS)
        return builder.gep(array.data, [builder.mul(arguments[1], words)])

    return STATE_TYPE(tables, types.int64), generate


state_of: Any
"""The function of the kernel that finds the state of a replication among all."""
advance: Any = engine.advance
"""The event loop, as the kernel calls it."""
if SIMULATED:
    state_of = operator.getitem
else:
    from numba.cuda.extending import intrinsic  # pyright: ignore[reportMissingImports]

    state_of = intrinsic(address_of_state)


def advance_all(states, until, answers):
    """Play every replication up to `until` (ns); `answers`: results of `advance`, shape (replications,)."""
    replication = cuda.grid(1)
    if replication < len(answers):
        answers[replication] = advance(state_of(states, replication), until)


@cache
def kernel() -> Any:
    """Return the kernel; the first launch compiles it (minutes), later processes find it on disk."""
    if SIMULATED:
        return cuda.jit(advance_all)
    global advance
    entry: Any = engine.advance
    advance = for_numba(entry.function, parts)
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(code_folder())  # numba reads it when a function is decorated
    try:  # without optimisation at link time, which would merge roundings again
        return cuda.jit(advance_all, lto=False, cache=True)
    finally:
        settings.CACHE_DIR = before


@contextmanager
def dispatchers_named() -> Iterator[None]:
    """While the block runs, the modules of parts name dispatchers: numba-cuda knows no other functions."""
    modules = {id(part.__globals__): part.__globals__ for part in known}.values()
    plain = [{name: one for name, one in names.items() if isfunction(one)} for names in modules]
    for names, functions in zip(modules, plain, strict=True):
        names.update({name: known.get(one, one) for name, one in functions.items()})
    try:
        yield
    finally:
        for names, functions in zip(modules, plain, strict=True):
            names.update(functions)


def send(packed: Packed) -> tuple[Packed, Any]:
    """Copy a state to the GPU; return the copy and the table of the addresses of its arrays there."""
    if SIMULATED:
        copy = fetch(packed)
        return copy, State(copy)
    copy = packed._replace(block=cuda.to_device(packed.block))
    table = packed.table.copy()
    table[:, 0] += copy.block.__cuda_array_interface__["data"][0]
    return copy, table.ravel()


def fetch(packed: Packed) -> Packed:
    """Copy a state back."""
    return packed._replace(block=packed.block.copy() if SIMULATED else packed.block.copy_to_host())


def launch(tables: Sequence[Any], until: int) -> np.ndarray:
    """Play all replications up to `until` (ns); return the results of `advance`, shape (replications,)."""
    answers = cuda.to_device(np.zeros(len(tables), np.int64))
    states = tables if SIMULATED else cuda.to_device(np.concatenate(tables))
    play = kernel()
    with ExitStack() as block:
        block.enter_context(warnings.catch_warnings())
        if not SIMULATED:
            block.enter_context(separate_roundings())
            block.enter_context(dispatchers_named())
        # numba warns that few threads use little of the GPU; there are as many as replications
        warnings.simplefilter("ignore", NumbaPerformanceWarning)
        blocks = -(-len(tables) // THREADS_A_BLOCK)
        play[blocks, THREADS_A_BLOCK](states, until, answers)
    return answers.copy_to_host()
