"""Time series of short runs, against the state at their end and against another way of stepping."""

import numpy as np
import pytest
from thesis import thesis
from whole_network import play

from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.statistics.series import time_series


def scenario(**changes):
    return thesis().with_(
        traffic__source="greedy", run__duration_s=2.0, run__warmup_s=1.0, run__seed=7, **changes
    )


@pytest.fixture(scope="module")
def series():
    return time_series(scenario(), step_s=0.25)


def test_steps_cover_the_run_with_its_warm_up_and_queues_are_named(series):
    assert series.time.values.tolist() == [0.25 * step for step in range(1, 13)]
    assert series.flow.values.tolist() == [1, 2]
    assert series.time.attrs["units"] == "s"
    names = series.queue.values.tolist()
    assert len(set(names)) == len(names)
    assert {"p1.1>c1 uplink", "c1>p1.2 downlink", "p1.1>c1 token_buffer"} <= set(names)


@pytest.mark.parametrize("time_s", [0.5, 3.0])
def test_each_look_shows_the_state_at_its_time(series, time_s):
    sim = play(scenario(), time_s)
    seen = series.sel(time=time_s)
    conn = sim.connections
    assert seen.cwnd_segments.values.tolist() == conn.cwnd.tolist()
    assert seen.ssthresh_segments.values.tolist() == conn.ssthresh.tolist()
    assert seen.srtt_s.values == pytest.approx(conn.srtt / SECOND)
    assert seen.flight_segments.values.tolist() == (conn.snd_nxt - conn.snd_una).tolist()
    assert seen.outstanding_segments.values.tolist() == (conn.snd_max - conn.snd_una).tolist()
    assert seen.queue_packets.values.tolist() == sim.queues.length.tolist()


def test_goodputs_of_the_steps_add_up(series):
    bits = play(scenario(), 3.0).flow_statistics.bytes_delivered * 8
    assert (series.goodput_kbps.sum("time") * 1000 * 0.25).values == pytest.approx(bits)
    assert np.all(bits > 0)


@pytest.mark.parametrize("step_s", [0.0, -1.0, 3.5, float("nan")])
def test_steps_that_do_not_fit_are_refused(step_s):
    with pytest.raises(ValueError, match="a step must"):
        time_series(scenario(), step_s=step_s)
