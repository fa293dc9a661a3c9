"""Request-reply sessions over TCP: what the chain of stages says about them."""

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.chain import Stationary, solve_chain
from btqueue.network.request_reply.law import QUANTILES, metrics_of, moves_of, session_law
from btqueue.network.request_reply.path import NS, Path, pieces_of
from btqueue.network.request_reply.plan import Plan
from btqueue.network.request_reply.route import FREE
from btqueue.scenario import Scenario
from btqueue.transport.request_reply_transfer import Rules

SPREAD = 20
"""Points that stand for the sum of two processing delays."""

REPLACED = 0.05
"""Share of the stages replaced by others from which on a warning says so."""

BALANCED = 1e-8
"""Imbalance of the chain up to which it counts as solved."""

FEWEST = 1e-4
"""Sessions for each stage below which the chain does not describe sessions any more."""

LONGEST, WIDE = 4.0, 40.0
"""How far the law of the session time goes, in means; with losses also in means and least timeouts."""


def plan_of(scenario: Scenario) -> Plan:
    """Return what the sessions of the scenario's connection are made of."""
    traffic, transport = scenario.traffic, scenario.transport
    path, rules = Path(scenario), rules_of(scenario)
    sizes = (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
    request, reply, goodbye = (pieces_of(size, transport.mss_bytes) for size in sizes)
    forms = {size: path.form(size + transport.header_bytes) for size in {*request, *reply, *goodbye}}
    small = path.form(transport.header_bytes)
    way = path.way
    # What can be in one buffer: a window of segments, a session's good-bye and an acknowledgement of each.
    most = 2 * min(rules.receive_window, max(len(request), len(reply)) + len(goodbye)) + 1
    packets = max(1, *(len(form.fragments) for form in forms.values()))
    tight = any(hop.buffer < most * packets for route in way.routes for hop in route)
    lossy = any(loss > 0.0 for form in (*forms.values(), small) for losses in form.losses for loss in losses)
    return Plan(
        way=way,
        rules=rules,
        data=(tuple(forms[size] for size in request + goodbye), tuple(forms[size] for size in reply)),
        user_bytes=(tuple(request + goodbye), tuple(reply)),
        small=small,
        request=len(request),
        reply=len(reply),
        goodbye=len(goodbye),
        pause=round(traffic.pause_s * NS),
        handshake=transport.connection_per_session,
        lossy=lossy or tight,
    )


def rules_of(scenario: Scenario) -> Rules:
    """Return what both ends of the connection go by, in ns."""
    transport, flows = scenario.transport, scenario.network.flows
    own = None if isinstance(flows, str) else flows[0].receive_window_segments
    return Rules(
        receive_window=transport.receive_window_segments if own is None else own,
        initial_window=float(transport.initial_window_segments),
        initial_ssthresh=float(transport.initial_ssthresh_segments),
        initial_rto=transport.initial_rto_s * NS,
        min_rto=transport.min_rto_s * NS,
        max_rto=transport.max_rto_s * NS,
        backoff=transport.rto_backoff,
        timestamps=transport.timestamps,
        ack_every=transport.ack_every_segments if transport.delayed_ack else 1,
        ack_delay=transport.ack_delay_s * NS,
    )


def answer_tcp(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    plan = plan_of(scenario)
    solved = solve_chain(plan)
    slot = SLOT_S * NS
    elapsed = solved.mean(lambda record: record.elapsed + record.repeated * slot) / NS
    sessions = solved.mean(lambda record: record.finished is not None)
    if solved.residual > BALANCED or sessions < FEWEST:
        raise NoConvergence(
            f"the chain of {len(solved.chain.transitions)} stages of sessions has no steady state (imbalance "
            f"{solved.residual:.1g}, {sessions:.1g} sessions a stage, {solved.unexplored:.0%} replaced)"
        )
    metrics = {"sessions_per_s": one_way(sessions / elapsed), "sessions_lost": one_way(0.0)}
    mean = mean_session_s(solved) / sessions
    chance = {"jitter_s": scenario.run.jitter_s, "slot_s": SLOT_S}
    moves = moves_of(solved)
    law = session_law(moves, longest_s=LONGEST * mean, **chance)
    wide = None
    if plan.lossy:
        wide = session_law(moves, longest_s=WIDE * (mean + scenario.transport.min_rto_s), **chance)
    metrics |= {name: one_way(value) for name, value in metrics_of(law, mean, wide).items()}
    traffic = scenario.traffic
    sizes = np.array([traffic.request_bytes + traffic.goodbye_bytes, traffic.reply_bytes])
    metrics["goodput_kbps"] = sizes * 8 / 1000 * sessions / elapsed
    metrics["throughput_kbps"] = per_sender(solved, "sent_bytes") * 8 / 1000 / elapsed
    for name, counted in (
        ("timeouts", "timeouts"),
        ("fast_retransmits", "fast"),
        ("retransmissions", "resent"),
    ):
        metrics[f"{name}_per_s"] = per_sender(solved, counted) / elapsed
    delay_s = scenario.run.jitter_s if plan.way.polled == FREE else 0.0  # waiting for a poll absorbs it
    metrics |= round_trips(solved, delay_s)
    if any(failing for form in (*plan.data[0], *plan.data[1], plan.small) for _, failing in form.fragments):
        # repeated packets are known to the mean alone
        metrics = {name: value for name, value in metrics.items() if not name.startswith(("rtt_sd", "rtt_p"))}
    if plan.handshake:
        opened = solved.mean(lambda record: record.connected is not None)
        connecting = solved.mean(lambda record: record.connected or 0) / NS
        metrics["connect_time_s"] = one_way(connecting / opened)
    return metrics, _notes(plan, solved)


def one_way(value: float) -> np.ndarray:
    """Return a metric that only the requesting flow has."""
    return np.array([value, np.nan])


def per_sender(solved: Stationary, name: str) -> np.ndarray:
    """Return the mean over transitions of what a record counts for each sender."""
    return np.array([solved.mean(lambda record, f=flow: getattr(record, name)[f]) for flow in (0, 1)])


def mean_session_s(solved: Stationary) -> float:
    """Return the mean time that sessions take within a stage (s), repeated packets included."""
    total = 0.0
    for state, transitions in solved.chain.transitions.items():
        within = solved.chain.examples[state].in_session
        for t in transitions:
            record = t.record
            if record.started is None and not within:
                continue
            end = record.elapsed if record.finished is None else record.finished
            time = end - (record.started or 0) + record.chain.repeated_slots * SLOT_S * NS
            total += solved.visits[state] * t.probability * time / NS
    return total


def round_trips(solved: Stationary, delay_s: float) -> dict[str, np.ndarray]:
    """Return mean, deviation and quantiles of the round-trip samples (s) of both senders.

    To the samples, which hold the means of the processing delays, the spread of two of them is added: uniform
    up to `delay_s`, one for the segment and one for its acknowledgement.
    """
    spread = (np.arange(SPREAD) + 0.5) / SPREAD - 0.5
    spread = np.sort((spread[:, None] + spread).ravel())[SPREAD // 2 :: SPREAD] * delay_s
    names = ["rtt_s", "rtt_sd_s", *(f"rtt_p{percent}_s" for percent in QUANTILES)]
    found = {name: np.full(2, np.nan) for name in names}
    for flow in (0, 1):
        shares, samples, late = [], [], 0.0
        for share, record in solved.weighted():
            shares += [share] * len(record.samples[flow])
            samples += record.samples[flow]
            late += share * record.late[flow]
        if not samples:
            continue
        times = np.add.outer(np.array(samples) / NS, spread).ravel()
        weights = np.repeat(shares, len(spread)) / (sum(shares) * len(spread))
        order = np.argsort(times)
        rising = np.cumsum(weights[order])
        mean = weights @ times
        found["rtt_s"][flow] = mean + late / sum(shares) * SLOT_S
        found["rtt_sd_s"][flow] = np.sqrt(max(0.0, weights @ (times - mean) ** 2))
        for percent in QUANTILES:
            place = min(int(np.searchsorted(rising, percent / 100 * rising[-1])), len(order) - 1)
            found[f"rtt_p{percent}_s"][flow] = times[order[place]]
    return found


def _notes(plan: Plan, solved: Stationary) -> dict:
    warnings = []
    if solved.unexplored > REPLACED:
        warnings.append(
            f"{solved.unexplored:.0%} of the stages of sessions are replaced by ones like them: there are "
            "too many ways to lose segments; rare long sessions are least certain"
        )
    how = "Markov chain of stages between losses" if plan.lossy else "recursion over segments"
    return {
        "method": f"request-reply sessions over TCP: {how}",
        "converged": solved.residual <= BALANCED,
        "residual": solved.residual,
        "iterations": solved.rounds,
        "errors": "goodput 4 %, session time 5 %, at every third segment lost 17 %" if plan.lossy else "1 %",
        "warnings": warnings,
    }
