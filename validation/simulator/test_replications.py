"""Replications: what is measured in each, when there are enough, warm-up, interruption."""

import os
import signal
import time

import numpy as np
import pytest
from thesis import thesis, thesis_of

from btqueue.scenario import ScenarioError
from btqueue.simulator import engine, replications
from btqueue.simulator.construction import state
from btqueue.simulator.machinery.threads import Stopped, to_the_end
from btqueue.simulator.replications import Interrupted, simulate, simulate_many

LIGHT = thesis().with_(traffic__load_kbps=20, run__duration_s=60, run__warmup_s=5, run__replications=1)
"""A piconet with little to do: every message is delivered long before the run ends."""


def test_results_are_read_without_the_network_or_the_files_of_the_scenario(tmp_path, monkeypatch):
    file = tmp_path / "arrivals.txt"
    file.write_text("".join(f"{0.5 * number} 500\n" for number in range(1, 20)))
    run = {"run__duration_s": 5, "run__warmup_s": 1, "run__replications": 2}
    scenario = LIGHT.with_(traffic__source="file", traffic__arrival_file=str(file), **run)
    expected = simulate(scenario)
    expected.to_dataset()
    later = simulate(scenario)
    file.unlink()
    state.keep.cache_clear()
    monkeypatch.setattr(state, "numbers_of", None)  # a call would be a TypeError
    assert later.identical(expected)


def test_flows_and_links_have_the_names_of_their_nodes():
    shape = {"topology": "scatternet", "piconets": 2, "peripherals": 1, "bridge": "MS"}
    scenario = thesis_of({"network": shape}).with_(run__duration_s=5, run__warmup_s=1)
    result = simulate(scenario.with_(run__replications=2))
    assert result["flow_name"].values.tolist() == ["p1.1>p2.1", "p2.1>p1.1"]
    assert result["link_name"].values.tolist() == ["c1-p1.1", "c1-c2", "c2-p2.1"]
    assert result["polls_per_s"].dims == ("replication", "link")


def test_the_warm_up_is_found_where_the_scenario_leaves_it_open():
    # windows grow for some seconds: nothing is dropped only if that were not noticed
    result = simulate(LIGHT.with_(traffic__load_kbps=160, run__warmup_s="auto", run__replications=2))
    assert 0 < result.attrs["warmup_s"] <= 30
    assert result.attrs["complete"]


def test_a_run_that_never_becomes_stationary_is_refused():
    schedule = ({"at_s": 42.0, "load_kbps": 5.0},)  # what follows varies so little that MSER-5 starts there
    with pytest.raises(ScenarioError, match=r"goodput did not become stationary.*give warmup_s") as error:
        simulate(LIGHT.with_(traffic__load_kbps=150, traffic__load_schedule=schedule, run__warmup_s="auto"))
    assert error.value.key == "run.warmup_s"


def test_a_run_that_becomes_twice_as_long_is_the_run_of_this_length():
    scenario = LIGHT.with_(traffic__load_kbps=160, run__duration_s=8)
    network, begun = state.empty_network(scenario), {}
    for parts in (8, 4, 2, 1):
        job = replications.replicate(network, scenario, 0, 5.0, None, parts, begun)
        found = to_the_end(job)
        assert found.counts.seconds == 8 / parts
    whole = replications.run_replication(scenario, 0)
    assert found.counts.everything() == whole.counts.everything()
    assert found.events == whole.events and not begun


def interrupting(calls):
    """A progress function that sends Ctrl-C at that call, and then gives the main thread time to notice."""
    seen = []

    def progress(share):
        seen.append(share)
        if len(seen) == calls:
            os.kill(os.getpid(), signal.SIGINT)
        if len(seen) >= calls:
            time.sleep(0.2)

    return progress


def test_an_interruption_keeps_the_replications_that_came_to_their_end():
    scenario = LIGHT.with_(run__duration_s=5, run__warmup_s=1, run__replications=1000)
    with pytest.raises(Interrupted) as interruption:
        simulate(scenario, progress=interrupting(100), threads=1)  # less than 30 calls a replication
    partial = interruption.value.results
    assert partial is not None
    assert (bool(partial.attrs["complete"]), partial.attrs["wanted"]) == (False, 1000)
    assert 3 <= partial.attrs["finished"] == partial.sizes["replication"] < 1000
    np.testing.assert_allclose(partial["measured_s"], 5)


def test_many_scenarios_have_the_results_that_each_has_alone():
    short = LIGHT.with_(run__duration_s=3, run__warmup_s=1)
    scenarios = [
        short.with_(run__replications=2),
        short,
        short.with_(run__replications=3, run__precision=0.5, traffic__load_kbps=40),
        short.with_(run__replications=2, run__warmup_s=0.5),
    ]
    for threads in (1, 2):
        for alone, found in zip(scenarios, simulate_many(scenarios, threads=threads), strict=True):
            assert found.identical(simulate(alone))


def test_many_interrupted_scenarios_keep_what_was_finished_and_what_was_measured():
    short, endless = (LIGHT.with_(run__duration_s=one, run__replications=2) for one in (1, 1e6))
    with pytest.raises(Stopped) as stopped:
        simulate_many([short, endless, short], threads=1, progress=interrupting(8))
    finished, cut_short = stopped.value.results  # the third was not begun
    assert (finished.attrs["finished"], finished.attrs["complete"]) == (2, 1)
    assert (cut_short.attrs["finished"], cut_short.attrs["complete"]) == (0, 0)
    assert 0 < float(cut_short["measured_s"][0]) < 1e6


def test_a_run_shorter_than_the_clocks_step_is_refused():
    with pytest.raises(ScenarioError, match=r"duration_s = 1e-10: must be at least 1e-09 s") as error:
        simulate(LIGHT.with_(run__duration_s=1e-10))
    assert error.value.key == "run.duration_s"


ISLANDS = [{"name": central, "central": central, "peripherals": [f"{central}1"]} for central in "cd"]
UP = [{"from": f"{central}1", "to": central} for central in "cd"]


@pytest.mark.parametrize("parts", [1, 2])
def test_ctrl_c_is_heard_in_the_middle_of_a_chunk_of_very_many_events(parts, monkeypatch):
    scenario = thesis(
        network={"topology": "custom", "piconet_list": ISLANDS[:parts], "flows": UP[:parts]},
        traffic={"source": "greedy"},
        run={"duration_s": 1e6, "replications": 1},
    )
    pauses = []

    def interrupted_advance(sim, until):
        reason = engine.advance(sim, until)
        if reason == engine.PAUSED:
            pauses.append(int(sim.clock[0].events))
        return reason

    monkeypatch.setattr(replications, "FIRST_CHUNK_S", 1e6)
    monkeypatch.setattr(replications, "advance", interrupted_advance)
    job = replications.replicate(state.empty_network(scenario), scenario, 0, 0.0, None)
    while not pauses:
        next(job)
    with pytest.raises(StopIteration) as end:
        job.send(True)
    measured = end.value.value
    assert len(pauses) == 1
    assert pauses[0] == pytest.approx(engine.EVENTS_A_PAUSE, rel=0.01)
    if parts == 1:
        assert measured is not None and not measured.complete
        assert 0 < measured.counts.seconds < 1e6
    else:
        assert measured is None, "the parts have come to different times"
