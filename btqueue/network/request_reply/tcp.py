"""Request-reply sessions over TCP: what the chain of stages says about them."""

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.chain import Solved, solve_chain
from btqueue.network.request_reply.law import POINTS, QUANTILES, metrics_of, moves_of, session_law
from btqueue.network.request_reply.path import NS, Path, pieces_of
from btqueue.network.request_reply.plan import Plan, Rules
from btqueue.network.request_reply.records import NONE
from btqueue.network.request_reply.route import FREE
from btqueue.scenario import Scenario

SPREAD = 20
"""Points that stand for the sum of two processing delays."""

REPLACED = 0.05
"""Share of the stages replaced by others from which on a warning says so."""

BALANCED = 1e-8
"""Imbalance of the chain up to which it counts as solved."""

FEWEST = 1e-4
"""Sessions for each stage below which the chain does not describe sessions any more."""

ROUNDED = 1e-9
"""Probability that is rounding: a law of few points has quantiles exactly at its steps."""

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
    nominal = {form: path.form(size + transport.header_bytes, nominal=True) for size, form in forms.items()}
    nominal[small] = path.form(transport.header_bytes, nominal=True)
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
        nominal=nominal,
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
    futures = solved.found.futures[: len(solved.shares)]
    elapsed = solved.mean(solved.elapsed + futures["repeated"] * SLOT_S * NS) / NS
    sessions = solved.mean(futures["finished"] != NONE)
    if solved.residual > BALANCED or sessions < FEWEST:
        raise NoConvergence(
            f"the chain of {solved.stages} stages of sessions has no steady state (imbalance "
            f"{solved.residual:.1g}, {sessions:.1g} sessions a stage, {solved.unexplored:.0%} replaced)"
        )
    metrics = {"sessions_per_s": one_way(sessions / elapsed), "sessions_lost": one_way(0.0)}
    mean = mean_session_s(solved) / sessions
    chance = {"jitter_s": scenario.run.jitter_s, "slot_s": SLOT_S}
    moves = moves_of(solved)
    points = POINTS[plan.lossy]
    law = session_law(moves, points, longest_s=LONGEST * mean, **chance)
    wide = None
    if plan.lossy:
        wide = session_law(moves, points, longest_s=WIDE * (mean + scenario.transport.min_rto_s), **chance)
    metrics |= {name: one_way(value) for name, value in metrics_of(law, mean, wide).items()}
    traffic = scenario.traffic
    sizes = np.array([traffic.request_bytes + traffic.goodbye_bytes, traffic.reply_bytes])
    metrics["goodput_kbps"] = sizes * 8 / 1000 * sessions / elapsed
    metrics["throughput_kbps"] = per_sender(solved, "sent_bytes") * 8 / 1000 / elapsed
    for name, counted in (
        ("timeouts", "timeouts"),
        ("fast_retransmits", "fast_retransmits"),
        ("retransmissions", "resent"),
    ):
        metrics[f"{name}_per_s"] = per_sender(solved, counted) / elapsed
    delay_s = scenario.run.jitter_s if plan.way.polled == FREE else 0.0  # waiting for a poll absorbs it
    metrics |= round_trips(solved, delay_s)
    if any(failing for form in (*plan.data[0], *plan.data[1], plan.small) for _, failing in form.fragments):
        # repeated packets are known to the mean alone
        metrics = {name: value for name, value in metrics.items() if not name.startswith(("rtt_sd", "rtt_p"))}
    if plan.handshake:
        connected = futures["connected"] != NONE
        connecting = solved.mean(np.where(connected, futures["connected"], 0)) / NS
        metrics["connect_time_s"] = one_way(connecting / solved.mean(connected))
    return metrics, _notes(plan, solved)


def one_way(value: float) -> np.ndarray:
    """Return a metric that only the requesting flow has."""
    return np.array([value, np.nan])


def per_sender(solved: Solved, name: str) -> np.ndarray:
    """Return the mean over futures of what happens to each sender."""
    return solved.shares @ solved.found.flows[name][: len(solved.shares)]


def mean_session_s(solved: Solved) -> float:
    """Return the mean time that sessions take within a stage (s), repeated packets included."""
    futures = solved.found.futures[: len(solved.shares)]
    begun, ended = futures["started"] != NONE, futures["finished"] != NONE
    within = begun | solved.found.states["in_session"][futures["source"]]
    end = np.where(ended, futures["finished"], solved.elapsed)
    repeated = np.where(ended, solved.net.histories["repeated"][futures["history"]], 0.0)
    time = end - np.where(begun, futures["started"], 0) + repeated * SLOT_S * NS
    return solved.mean(np.where(within, time, 0.0)) / NS


def round_trips(solved: Solved, delay_s: float) -> dict[str, np.ndarray]:
    """Return mean, deviation and quantiles of the round-trip samples (s) of both senders.

    To the samples, which hold the means of the processing delays, the spread of two of them is added: uniform
    up to `delay_s`, one for the segment and one for its acknowledgement.
    """
    spread = (np.arange(SPREAD) + 0.5) / SPREAD - 0.5
    spread = np.sort((spread[:, None] + spread).ravel())[SPREAD // 2 :: SPREAD] * delay_s
    names = ["rtt_s", "rtt_sd_s", *(f"rtt_p{percent}_s" for percent in QUANTILES)]
    found = {name: np.full(2, np.nan) for name in names}
    for flow in (0, 1):
        own = solved.found.flows[: len(solved.shares), flow]
        counts = own["sampled"]
        shares = np.repeat(solved.shares, counts)
        if not len(shares):
            continue
        behind = np.cumsum(counts)
        places = np.arange(behind[-1]) + np.repeat(own["first"] - (behind - counts), counts)
        samples, back = np.unique(solved.found.samples[places], return_inverse=True)
        shares, late = np.bincount(back, shares), solved.mean(own["late"])
        times = np.add.outer(samples / NS, spread).ravel()
        weights = np.repeat(shares, len(spread)) / (shares.sum() * len(spread))
        order = np.argsort(times)
        rising = np.cumsum(weights[order])
        mean = weights @ times
        found["rtt_s"][flow] = mean + late / shares.sum() * SLOT_S
        found["rtt_sd_s"][flow] = np.sqrt(max(0.0, weights @ (times - mean) ** 2))
        for percent in QUANTILES:
            place = min(int(np.searchsorted(rising, percent / 100 * rising[-1] - ROUNDED)), len(order) - 1)
            found[f"rtt_p{percent}_s"][flow] = times[order[place]]
    return found


def _notes(plan: Plan, solved: Solved) -> dict:
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
        "residual": max(solved.residual, solved.unexplored),
        "iterations": solved.rounds,
        "errors": "goodput, session time 3 %; every third of many segments lost 9 %" if plan.lossy else "1 %",
        "warnings": warnings,
    }
