"""What no network can do: numbers that are wrong whatever the scenario, in an answer of either engine.

Written from the definitions in `btqueue.scenario.metrics` and from the scenario: nothing here comes from
an engine, and no number is compared with one that an engine has computed, except with its own answer.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from btqueue.baseband.low_energy import PHYS
from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.metrics import Results
from btqueue.scenario.topology import FlowPlan, topology

ALWAYS = (
    *("goodput_kbps", "throughput_kbps", "timeouts_per_s", "fast_retransmits_per_s", "retransmissions_per_s"),
    *("queue_packets", "polls_per_s", "slot_share", "slot_utilisation"),
)
"""Metrics that are numbers at any time: nothing has to be observed for them."""
SHARES = (
    *("segment_loss", "loss_token_buffer", "loss_baseband_buffer", "loss_radio", "loss_arq"),
    *("loss_node_buffer", "loss_relay", "loss_outside", "messages_refused", "piggybacked_acks"),
    *("sessions_lost", "slot_share", "slot_utilisation", "fairness"),
)
TIMES = ("rtt", "delay", "session_time")
SLOT_S = 625e-6
LONGEST = 5
"""Slots of the longest packet; the one on the air at an end of the measurement is counted whole."""
ROUNDING = 1e-9
"""Relative; the answers are sums and quotients of a few numbers in double precision."""
BIN = 1 / 16
"""The simulator's quantiles are known within a bin of a sixteenth of the time."""
Found = tuple[Any, str]
"""Where something impossible holds, and what it is, in words."""
FALSE_ALARMS = 1e-12
"""Probability that a test of a random count fails by chance, for each flow of each scenario."""


def impossible(scenario: Scenario, dataset: Results | xr.Dataset) -> list[str]:
    """Return what is impossible in an answer, in words; an empty list where nothing is."""
    answer = Answer(scenario, dataset)
    rules = (numbers, shares, order, windows, rates, air, load)
    # comparisons with NaN hold nowhere
    return [words for rule in rules for holds, words in rule(answer) if np.any(holds)]


class Answer:
    """An answer of one engine with the scenario that it is for."""

    def __init__(self, scenario: Scenario, dataset: Results | xr.Dataset) -> None:
        """Take the metrics apart."""
        self.scenario = scenario
        self.dataset = dataset
        self.simulated = dataset.attrs["answered_by"] == "simulation"
        self.metrics = {str(name): v.values for name, v in dataset.data_vars.items() if name in METRICS}
        self.plan = topology(scenario)
        self.begins_empty = self.simulated and dataset.attrs["warmup_s"] == 0
        if self.simulated:
            self.measured_s = dataset["measured_s"].values
            self.until_s = dataset.attrs["warmup_s"] + self.measured_s

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a metric; NaN where the engine does not give it."""
        return self.metrics.get(name, np.array(np.nan))

    def own(self, flow: FlowPlan, key: str, table: str):
        """Return the value of a key of a flow."""
        return getattr(getattr(self.scenario.of_flow(flow.spec), table), key)

    def law(self, flow: FlowPlan) -> str:
        """Return the law of a flow's source."""
        return self.own(flow, "source", "traffic")

    def left_out(self, queue: str) -> bool:
        """Whether a warning says that there is no mean length of this queue."""
        return any("left out" in warning and queue in warning for warning in self.dataset.attrs["warnings"])

    def per_flow(self, value) -> np.ndarray:
        """Return a value for each flow, shape (flows,)."""
        return np.array([value(flow) for flow in self.plan.flows], float)


def above(low, high) -> np.ndarray:
    """Whether the first is above the second by more than rounding."""
    return np.asarray(low) > np.asarray(high) * (1 + ROUNDING) + 1e-12


def numbers(a: Answer) -> Iterator[Found]:
    """Nothing is infinite or negative, and what is always known is a number."""
    for name, values in a.metrics.items():
        yield np.isinf(values), f"{name} is infinite"
        yield values < 0, f"{name} is negative"
        missing = np.isnan(values) & (name in ALWAYS)
        if name == "queue_packets":  # one without a limit that grows with the run is left out, and named
            missing &= ~np.array([a.left_out(str(queue)) for queue in a.dataset["queue"].values], bool)
        yield missing, f"{name} is no number"
        if not a.simulated and values.size and a["goodput_kbps"].any():
            yield np.isnan(values).all(), f"{name} is given and no number for any flow"
    some = a["goodput_kbps"].any(axis=-1)
    yield np.isnan(a["fairness"]) & some, "fairness is no number, and somebody gets something"
    for quantity in TIMES:
        names = [
            n for n in a.metrics if n in {f"{quantity}_s"} | {f"{quantity}_p{p}_s" for p in (50, 90, 95, 99)}
        ]
        for name in names[1:] if a.simulated else ():
            # A mean has observations where its percentiles have; those of sessions stand in their own metric.
            if quantity != "delay":
                known = np.isnan(a[names[0]]) == np.isnan(a[name])
                yield ~known, f"{names[0]} is known where {name} is not, or the reverse"
    for name, values in a.metrics.items():
        if name in ("goodput_kbps", "throughput_kbps") and a.simulated:
            yield values.shape[0] != len(a.measured_s), f"{name} has another number of replications"
    if not a.simulated:
        attrs = a.dataset.attrs
        yield not attrs["converged"], "an answer that has not converged"
        yield not np.isfinite(attrs["residual"]) or attrs["residual"] < 0, "the residual is no number"


def shares(a: Answer) -> Iterator[Found]:
    """Shares lie between 0 and 1, fairness above 0."""
    for name in SHARES:
        slack = 0.0
        if a.simulated and name in ("slot_share", "slot_utilisation"):
            slots = a.measured_s / SLOT_S
            slack = (LONGEST + 1) / slots.reshape(-1, *[1] * (a[name].ndim - 1)) if a[name].ndim else 0.0
        yield above(a[name], 1 + slack), f"{name} is above 1"
    yield a["fairness"] <= 0, "fairness is 0"
    flows = max(1, len(a.plan.flows))
    yield above(1 / flows, a["fairness"]), "fairness is below 1 / flows"
    link = a.scenario.link
    # before the first transmission, too: the rest of a segment goes with the packet that is given up
    given_up = link.flush_timeout_s is not None or not isinstance(link.arq, str)
    if not given_up and (a.begins_empty or not a.simulated):
        yield above(1, a["transmissions_per_packet"]), "less than one transmission of a packet"


def order(a: Answer) -> Iterator[Found]:
    """Least, mean, quantiles and greatest are in order, and no time is longer than the run."""
    for quantity in TIMES:
        at = [a[f"{quantity}_p{percent}_s"] for percent in (50, 90, 95, 99)]
        for less, more, name in zip(at, at[1:], ("90", "95", "99"), strict=False):
            yield above(less, more), f"{quantity}: the {name} % quantile is below the one before"
        mean, coarse = a[f"{quantity}_s"], 1 + (BIN if a.simulated else 1e-6)
        for values, share in zip(at, (0.5, 0.9, 0.95, 0.99), strict=True):  # Markov's inequality
            known = values > 2e-5  # shorter times are all in the first bin of the simulator's histograms
            bad = known & above(values * (1 - share), mean * coarse)
            yield bad, f"{quantity}: the {share:.0%} quantile is too far above the mean"
    least, mean, most = a["rtt_min_s"], a["rtt_s"], a["rtt_max_s"]
    yield above(least, mean), "rtt_min_s is above rtt_s"
    yield above(mean, most), "rtt_s is above rtt_max_s"
    for percent in (50, 90, 95, 99):
        yield above(least, a[f"rtt_p{percent}_s"]), f"rtt_min_s is above rtt_p{percent}_s"
        yield above(a[f"rtt_p{percent}_s"], most), f"rtt_p{percent}_s is above rtt_max_s"
    slack = 1e-6 * most  # of a difference of squares
    yield above(a["rtt_sd_s"], (most - least) / 2 + slack), "rtt_sd_s is above half of the range"
    if a.simulated:
        until = np.asarray(a.until_s)[:, None] * (1 + 1e-9) + 1e-9
        for name in ("rtt_max_s", "delay_s", "acknowledged_delay_s", "session_time_s", "connect_time_s"):
            yield a[name] > until, f"{name} is longer than the run"
    else:
        yield above(a["delay_s"], a["acknowledged_delay_s"]), "acknowledged before it was delivered"


def windows(a: Answer) -> Iterator[Found]:
    """Windows are at least a segment, the one that is used at most what sender and receiver allow."""
    allowed = a.per_flow(lambda flow: a.own(flow, "receive_window_segments", "transport"))
    yield a["cwnd_segments"] < 1 - 1e-6, "cwnd_segments is below 1"
    yield above(a["window_segments"], a["cwnd_segments"]), "window_segments is above cwnd_segments"
    yield above(a["window_segments"], allowed), "window_segments is above the receive window"


def rates(a: Answer) -> Iterator[Found]:
    """Nobody gets more than was sent; recoveries send something; timers do not run out before their time."""
    yield above(a["goodput_kbps"], a["throughput_kbps"]), "goodput is above throughput"
    least_segment_kbit = 8e-3  # a segment has a byte at least
    resent = a["retransmissions_per_s"]
    if a.scenario.transport.protocol == "tcp":
        yield (
            above(resent * least_segment_kbit, a["throughput_kbps"]),
            "more bytes are sent again than are sent",
        )
        t = a.scenario.transport
        waits = min(t.min_rto_s, t.initial_rto_s)
        most = 1 / waits + (1 / a.measured_s[:, None] if a.simulated else 0)
        if not t.handshake:
            yield above(a["timeouts_per_s"], most), "timeouts come faster than the timer allows"
    if a.simulated:
        # a recovery may begin as the measurement ends, and send its first segment after that
        begun = a["fast_retransmits_per_s"] - 1 / a.measured_s[:, None]
        yield above(begun, resent), "more recoveries than retransmissions"


def air(a: Answer) -> Iterator[Found]:
    """Piconets carry at most what their packets hold, and poll at most once in two slots."""
    if not a.plan.piconets:
        return
    names = set(a.scenario.link.packets)
    if a.scenario.link.adaptation != "fixed":
        names |= set(a.scenario.link.adaptation_packets)
    packets = [PACKET_TYPES[name] for name in names]
    best = max(packet.payload_bytes * 8e-3 / (packet.slots * SLOT_S) for packet in packets)
    if a.scenario.link.bearer == "le":
        best = 8e3 / PHYS[a.scenario.le.phy].byte_us
    crossings = np.zeros((len(a.plan.piconets), len(a.plan.flows)))
    for number, flow in enumerate(a.plan.flows):
        for hop in a.plan.route(flow.source, flow.target):
            if hop.kind == "bluetooth":
                crossings[hop.index, number] += 1
    goodput = np.atleast_2d(a["goodput_kbps"])
    if not a.simulated or a.begins_empty:
        carried = goodput @ crossings.T  # shape (replications, piconets)
        yield above(carried, best), "a piconet carries more than its slots hold"
    used = crossings.any(axis=0)
    if a.scenario.transport.ack_path == "queued" and "rtt_s" in a.metrics:
        # The shortest packet, an access code and a header, is on the air for 126 microseconds.
        yield used & (a["rtt_s"] < 126e-6), "a round trip over the air is shorter than a packet"
    cycle_s = a["cycle_s"]
    if a.simulated:
        visits = a["polls_per_s"].sum(axis=-1) * a.measured_s / len(a.plan.piconets)
        most = a.measured_s / (2 * SLOT_S) + 1
        yield above(visits, most), "more visits than pairs of slots"
    else:
        yield cycle_s < 2 * SLOT_S * (1 - ROUNDING), "the polling cycle is shorter than two slots"


def load(a: Answer) -> Iterator[Found]:
    """Nobody gets more than was offered."""
    traffic = a.scenario.traffic
    for number, flow in enumerate(a.plan.flows):
        law = a.law(flow)
        offered = a.own(flow, "load_kbps", "traffic")
        if traffic.load_schedule:
            offered = max(offered, *(step.load_kbps for step in traffic.load_schedule))
        goodput = a["goodput_kbps"][..., number] if a["goodput_kbps"].ndim else a["goodput_kbps"]
        if law not in ("poisson", "periodic", "ibp"):
            continue
        if not a.simulated:
            yield above(goodput, offered * (1 + 1e-6)), f"flow {number + 1} gets more than is offered"
            continue
        bits = 8 * a.own(flow, "message_bytes", "traffic")
        begun = goodput * 1000 * a.measured_s / bits - 1  # messages that have come completely, at least
        expected = offered * 1000 / bits * np.asarray(a.until_s)
        if law == "poisson":
            chance = stats.poisson.sf(np.floor(begun) - 1, expected)
            yield (begun > 0) & (chance < FALSE_ALARMS), f"flow {number + 1} gets more than is offered"
        elif law == "periodic":
            yield begun > expected + 2, f"flow {number + 1} gets more than is offered"
