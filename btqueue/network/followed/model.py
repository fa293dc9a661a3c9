"""Metrics of a network whose connections are followed (`followed.averages`)."""

from typing import Any

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.followed.averages import FEW, SELDOM, UNSURE, Followed, follow
from btqueue.network.followed.plan import Plan
from btqueue.network.followed.sources import CLIENT
from btqueue.network.followed.world import (
    AT_BASEBAND,
    AT_BUCKET,
    AT_NODE,
    BY_OUTSIDE,
    DAMAGED,
    GIVEN_UP,
    INTACT,
    ON_THE_WAY,
    OUTSIDE,
    TO_BASEBAND,
    TO_BUCKET,
)
from btqueue.scenario import Scenario
from btqueue.scenario.description import description

SPREAD, CHANCE = 0.03, 6.0
"""Relative difference of goodput between runs above which there are several limit cycles; the same in
standard errors, which chance does not explain."""
UNSEEN = float(-np.log(0.05))
"""Events that are expected at most, with a probability of 95 %, where none was seen: Poisson's law."""
SHARES = {"rtt_p50_s": 0.5, "rtt_p90_s": 0.9, "rtt_p95_s": 0.95, "rtt_p99_s": 0.99}


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: bridges wait for each other for ever, or messages are too rare.
    """
    found = follow(Plan(scenario))
    notes = {
        "method": "connections followed from event to event, with random messages, delays and errors",
        "converged": True,
        "residual": max(found.goodput_error, found.trip_error, found.ends),
        "warnings": warnings(found),
    }
    return metrics_of(found), notes


def warnings(found: Followed) -> list[str]:
    """Return what an answer has to be distrusted for."""
    warned = []
    if (error := max(found.goodput_error, found.trip_error)) > UNSURE:
        warned.append(
            f"goodput or round trips have a standard error of {error:.1%}: simulate for more certain answers"
        )
    if found.delay_error > UNSURE and found.carried().any():
        warned.append(
            f"message delays have a standard error of {found.delay_error:.1%}: simulate for more certain ones"
        )
    warmup_s = found.plan.scenario.run.warmup_s
    latest_s = max(spec.traffic.start_s for spec in found.plan.specs)
    if warmup_s != "auto" and latest_s > warmup_s:
        warned.append(
            f"traffic.start_s: a flow begins after {latest_s:g} s, later than run.warmup_s ends; this is the "
            "answer of the long run, in which all flows have begun"
        )
    seconds = sum(run.seconds for run in found.runs) * len(found.plan.specs)
    if SELDOM * seconds < (count := float(found.counts.of("timeouts").sum())) < FEW:
        warned.append(
            f"timeouts are rare: {count:.0f} were counted, so that their rate has a standard error of "
            f"{count**-0.5:.0%}"
        )
    if count == 0.0 and (most := UNSEEN / seconds) > SELDOM and _may_time_out(found):
        warned.append(
            f"no timeout was seen in {seconds:.0f} s of connections: with a probability of 95 % a connection "
            f"has fewer than {most:.2g} a second"
        )
    rates = np.array(found.goodputs) * 8.0 / 1000.0 / SLOT_S / len(found.plan.specs)
    if (
        not found.carried().all()
        and rates.max() > (1.0 + max(SPREAD, CHANCE * found.goodput_error)) * rates.min() > 0.0
    ):
        warned.append(
            f"several limit cycles: each connection gets {rates.min():.1f} to {rates.max():.1f} kbit/s from "
            "run to run; their mean is given"
        )
    starved = int((found.counts.of("expected") == 0.0).sum())
    if starved:
        warned.append(f"{starved} of {len(found.plan.specs)} flows get nothing through")
    return warned


def _may_time_out(found: Followed) -> bool:
    """Return whether chance can lose a segment, a buffer did, or a round trip outlasted a least timeout."""
    if not found.plan.random:
        return False
    never_lost = {
        "link.arq": "unlimited", "link.flush_timeout_s": None,
        "network.outside_links.loss": 0.0, "network.outside_links.loss_back": 0.0,
    }  # fmt: skip
    traits = description(found.plan.scenario).traits
    if found.counts.of("lost").any() or any(
        one.value != never_lost.get(one.kind, one.value) for one in traits
    ):
        return True
    return any(
        (run.trips(flow) * SLOT_S > spec.transport.min_rto_s).any()
        for run in found.runs
        for flow, spec in enumerate(found.plan.specs)
    )


def metrics_of(found: Followed) -> dict[str, Any]:
    """Return the metrics by name: means over the flows of a class."""
    counts, world = found.counts, found.runs[0].world
    seconds = float(counts.time) * SLOT_S

    def total(name: str) -> np.ndarray:
        return found.of_kind(counts.of(name))

    goodput = total("delivered_bytes") * 8e-3 / seconds
    load, scale = goodput.copy(), np.ones(len(goodput))
    offers = [spec.traffic.source in ("poisson", "ibp", "periodic") for spec in found.plan.specs]
    offered = np.array([spec.traffic.load_kbps for spec in found.plan.specs])
    known = np.array(offers) & found.carried()
    load[known] = offered[known]
    load[offers] = np.minimum(load[offers], offered[offers])
    # where the load is carried, its sample had too many messages or too few
    np.divide(load, goodput, out=scale, where=known & (goodput > 0.0))
    again = total("repeated_bytes") / np.maximum(total("delivered_bytes"), 1.0)
    samples, trips = np.maximum(total("samples"), 1.0), total("trips")
    with np.errstate(invalid="ignore", divide="ignore"):
        rtt = total("trip_time") / trips * SLOT_S
        spread = np.maximum(total("trip_squares") / trips * SLOT_S**2 - rtt**2, 0.0)
    lost = np.minimum(total("lost") / np.maximum(total("ended"), 1.0), again / (1.0 + again))
    nothing = np.where(total("lost") > 0.0, 1.0, np.nan)  # what only waits is not lost
    metrics: dict[str, Any] = {
        "goodput_kbps": load,
        "throughput_kbps": load * (1.0 + again),
        **({"rtt_s": rtt, "rtt_sd_s": np.sqrt(spread), **_quantiles(found)} if trips.any() else {}),
        "window_segments": total("window_sum") / samples,
        "fast_retransmits_per_s": total("fast_retransmits") / seconds * scale,
        "segment_loss": np.where(total("delivered_bytes") > 0.0, lost, nothing),
        **_losses(found),
    }
    expired = total("timeouts")
    known = (expired > 0.0) | (not found.plan.random)  # by chance none may have been seen that there are
    if known.any():
        metrics["timeouts_per_s"] = np.where(known, expired / seconds * scale, np.nan)
    if lost.any():
        # without losses it grows for ever
        metrics["cwnd_segments"] = np.where(total("samples") > 0.0, total("cwnd_sum") / samples, np.nan)
    if any(offers):
        with np.errstate(invalid="ignore", divide="ignore"):
            delay = total("message_age") / total("messages_out") * SLOT_S
        if np.isfinite(delay[np.array(offers)]).any():
            metrics["delay_s"] = np.where(offers, delay, np.nan)
    if (world.flows["law"] == CLIENT).any():
        metrics |= _sessions(found, seconds)
    return metrics | _of_the_network(found, seconds)


def _quantiles(found: Followed) -> dict[str, np.ndarray]:
    """Return quantiles of the round trips of each class of flows (s)."""
    kinds = found.kinds
    rows = np.full((len(SHARES), len(kinds)), np.nan)
    for kind in np.unique(kinds):
        flows = np.flatnonzero(kinds == kind)
        trips = np.concatenate([run.trips(flow) for run in found.runs for flow in flows.tolist()])
        if trips.size:
            rows[:, flows] = np.quantile(trips, list(SHARES.values()))[:, None] * SLOT_S
    return dict(zip(SHARES, rows, strict=True))


def _losses(found: Followed) -> dict[str, np.ndarray]:
    """Return shares of the packets of each flow that are lost at each place."""
    fates, scenario = found.of_kind(found.counts.fates.T), found.plan.scenario

    def share_of(whole: np.ndarray, part: int) -> np.ndarray:
        return fates[part] / np.maximum(whole, 1.0)

    def share(part: int, *wholes: int) -> np.ndarray:
        return share_of(fates[list(wholes)].sum(axis=0), part)

    ended = (INTACT, DAMAGED, AT_BUCKET, AT_BASEBAND, ON_THE_WAY, GIVEN_UP, OUTSIDE, AT_NODE)
    metrics = {}
    if found.plan.topology.piconets:
        metrics["loss_token_buffer"] = share(AT_BUCKET, TO_BUCKET)
        metrics["loss_baseband_buffer"] = share(AT_BASEBAND, TO_BASEBAND)
        if scenario.link.arq == "none":
            outside = fates[BY_OUTSIDE] - fates[OUTSIDE]
            metrics["loss_radio"] = share_of(fates[INTACT] + fates[DAMAGED] - outside, DAMAGED)
        else:
            metrics["loss_arq"] = share(GIVEN_UP, *ended)
    if scenario.link.node_buffer_bytes is not None:
        metrics["loss_node_buffer"] = share(AT_NODE, *ended)
    if found.plan.topology.outside:
        metrics["loss_outside"] = share(OUTSIDE, BY_OUTSIDE)
    if (
        found.plan.topology.bridges
        or found.plan.topology.outside
        or scenario.flow_control.central_buffer_packets
    ):
        metrics["loss_relay"] = share(ON_THE_WAY, *ended)
    return metrics


def _sessions(found: Followed, seconds: float) -> dict[str, np.ndarray]:
    """Return rate, mean and deviation of the sessions of each client (s); not a number for others."""
    client = found.runs[0].world.flows["law"] == CLIENT
    number, time, squares = (
        np.where(client, found.of_kind(found.counts.of(name)), np.nan)
        for name in ("sessions", "session_time", "session_squares")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = time / number * SLOT_S
        spread = np.maximum(squares / number * SLOT_S**2 - mean**2, 0.0)
    rate = {"sessions_per_s": number / seconds}
    if not np.nansum(number):  # none ever begins
        return rate
    return rate | {"session_time_s": mean, "session_time_sd_s": np.sqrt(spread)}


def _of_the_network(found: Followed, seconds: float) -> dict[str, Any]:
    """Return mean queues, the polling cycle and the share of the slots beside voice with data."""
    counts, world = found.counts, found.runs[0].world
    ports, metrics = world.ports, {}
    lengths, waiting = counts.held / counts.time
    down = np.zeros(len(ports), bool)
    down[world.links["down"]] = True
    outside, shaped = ports["outside"] == 1, ports["shaped"] == 1
    kinds = {"uplink": ~down & ~outside, "downlink": down & ~outside, "outside": outside}
    queues = {"token_buffer": float(waiting[shaped].mean())} if shaped.any() else {}
    queues |= {name: float(lengths[chosen].mean()) for name, chosen in kinds.items() if chosen.any()}
    if queues:
        metrics["queue_packets"] = queues
    if len(world.piconets):
        visits = np.maximum(counts.visits, 1)
        cycles = seconds * world.piconets["links"] / visits
        # a visit that is under way at the end is counted whole
        metrics["cycle_s"] = float(np.maximum(cycles, 2.0 * SLOT_S).mean())
        free = 1.0 - world.piconets["reserved"] / np.maximum(world.piconets["period"], 1)
        used = float(counts.data_slots.mean()) * SLOT_S / seconds / free.mean()
        metrics["slot_utilisation"] = min(used, 1.0)  # a packet under way at the end is counted whole
    return metrics
