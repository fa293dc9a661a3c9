"""The exact TCP chain made small: cuts of its cycles, lumping of alike states and of alike links."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcp_chains import round_map
from tcp_chains.chain import compile_chain
from tcp_chains.cycle_cut import cut_cycles
from tcp_chains.lockstep import fate_probabilities, lockstep_rates
from tcp_chains.loss_process import LossProcess, alike_in_series, in_series
from tcp_chains.lumping import lump
from tcp_chains.round_map import RoundMap, index_passage, stationary_law

BURSTY = LossProcess.markov([0.02, 0.5], [0.01, 0.2], [[-1.0, 1.0], [4.0, -4.0]])


def test_cut_of_two_cycles_through_one_vertex_is_that_vertex():
    # 0 -> 1 -> 2 -> 0 and 1 -> 3 -> 1
    cut, order = cut_cycles(np.array([[1, 1], [2, 3], [0, 0], [1, 1]]))
    assert cut.tolist() == [1]
    assert sorted(order.tolist()) == [0, 1, 2, 3]


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 29)] * 2), min_size=30, max_size=30))
def test_without_the_cut_edges_lead_onwards_and_no_vertex_can_be_spared(edges: list[tuple[int, int]]):
    # all are reached from vertex 0 by the first successor
    successors = np.array([[min(k + 1, 29), a, b] for k, (a, b) in enumerate(edges)])
    successors[29, 0] = 0
    cut, order = cut_cycles(successors)
    place = np.argsort(order)
    onwards = place[successors] > place[:, None]
    assert np.all(onwards | np.isin(successors, cut))
    for spared in cut:
        others = set(cut.tolist()) - {int(spared)}
        reached, new = set(), {int(spared)}
        while new:
            new = {int(s) for v in new for s in successors[v]} - others - reached
            reached |= new
        assert spared in reached


@pytest.mark.parametrize(("window", "ack_loss"), [(6, True), (7, False)])
def test_cut_of_the_tcp_chain_is_small(window: int, ack_loss: bool):
    structure = compile_chain(window, ack_loss=ack_loss)
    assert index_passage(structure).cut.size < structure.states / 15


@pytest.mark.parametrize("ack_loss", [0.0, 0.1])
def test_lumped_chain_has_the_rates_of_the_whole(ack_loss: float, monkeypatch):
    from tcp_chains import lockstep

    loss = LossProcess.markov([0.02, 0.5], [ack_loss, 2 * ack_loss], [[-1.0, 1.0], [4.0, -4.0]])
    lumped = vars(lockstep_rates(window=5, loss=loss, rtt=0.1))
    monkeypatch.setattr(lockstep, "lump", lambda structure: structure)
    whole = vars(lockstep_rates(window=5, loss=loss, rtt=0.1))
    assert lumped["states"] < 0.7 * whole["states"]
    for name, expected in whole.items():
        if name != "states":
            assert lumped[name] == pytest.approx(expected, rel=1e-9)


def test_lumping_again_finds_nothing():
    once = lump(compile_chain(4))
    assert lump(once).states == once.states


def test_a_pass_counts_visits_as_its_definition_says():
    structure, spacing, rtt = compile_chain(3), 0.02, 0.15
    endings = int(structure.ending.max()) + 1
    rounds = np.stack([BURSTY.transition(rtt * k) for k in range(endings)])
    chain = RoundMap(structure, fate_probabilities(BURSTY), BURSTY.transition(spacing), rounds)
    visits = stationary_law(chain).visits
    # pi = pi P with P written out
    step = np.zeros((structure.states, 2, structure.states, 2))
    for state, fate in np.ndindex(structure.target.shape):
        ending = structure.ending[state, fate]
        hidden = rounds[ending] if ending else chain.between_segments
        step[state, :, structure.target[state, fate]] += chain.fate_probability[fate][:, None] * hidden
    law = visits.ravel() / visits.sum()
    assert law @ step.reshape(law.size, -1) == pytest.approx(law, abs=1e-12)


def test_compiled_pass_is_plain_python(monkeypatch: pytest.MonkeyPatch):
    def rates():
        return vars(lockstep_rates(window=3, loss=BURSTY, rtt=0.1, segment_spacing=0.01))

    compiled = rates()
    monkeypatch.setattr(round_map, "_pass", getattr(round_map._pass, "py_func", round_map._pass))
    assert rates() == pytest.approx(compiled, rel=1e-12, abs=1e-12)


def test_alike_links_in_series_need_not_be_told_apart():
    one, other = (
        vars(lockstep_rates(window=4, loss=loss, rtt=0.1, segment_spacing=0.01))
        for loss in (alike_in_series(BURSTY), in_series([BURSTY, BURSTY]))
    )
    assert one["states"] == other["states"] * 3 / 4
    for name in ("goodput", "timeouts", "fast_retransmits", "mean_window_found"):
        assert one[name] == pytest.approx(other[name], rel=1e-9)
