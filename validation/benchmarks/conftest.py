"""Keep what the benchmarks measure."""

import pytest


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
