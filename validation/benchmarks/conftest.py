"""Let the benchmarks import their neighbours, and keep what they measure."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def measured(benchmark):
    """Call a measurement once, print its numbers, keep them with the benchmark, and return them."""
    from other_programs import NotHere

    def run(function, *arguments, **named):
        try:
            result = benchmark.pedantic(function, arguments, named, rounds=1)
        except NotHere as reason:
            pytest.skip(str(reason))
        print(result)
        benchmark.extra_info.update(result)
        return result

    return run
