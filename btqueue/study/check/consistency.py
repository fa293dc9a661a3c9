"""Internal consistency: relations between the numbers of any correct simulator, and statistics of its output.

Conservation, Little's law, and bounds; then intervals too narrow and random streams in common. A bound counts
as broken only beyond the half-widths of the numbers in it and a tolerance that is named with it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median

import numpy as np
from scipy import stats

from btqueue.baseband.packets import SLOT_S, packet_type
from btqueue.network.bounds import capacity, on_air, window_kbps
from btqueue.network.certificates import NO_SHARES
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import in_tables
from btqueue.study.check.agreement import Rules
from btqueue.study.check.results import Finding, ForeignResults
from btqueue.study.comparison import metric_name

CONTINUOUS = (
    "rtt", "delay", "acknowledged_delay", "session_time", "cwnd", "window", "queue", "cycle", "slot",
)  # fmt: skip
"""Beginnings of the names of metrics that do not come out alike by chance, as counts of events do."""
LEAST_RATIO = 3.0
"""Ours must be this many times as wide, for the file need not have the scenario's run length."""
WATCHED = ("goodput_kbps", "throughput_kbps", "rtt_s", "window_segments", "cycle_s", "slot_utilisation")
"""Metrics whose replications are nearly normal, as the test wants them."""


def is_random(scenario: Scenario) -> bool:
    """Whether two runs with different seeds can differ at all."""
    sources = (scenario.of_flow(flow.spec).traffic for flow in topology(scenario).flows)
    fixed = all(
        own.source in ("greedy", "file") or (own.source == "periodic" and own.phase == "aligned")
        for own in sources
    )
    links, radio = scenario.network.outside_links, scenario.radio
    quiet = not any(x.loss or x.loss_back or x.jitter_s or x.up_s for x in links) and not radio.interferers
    perfect = all(one.model in (None, "perfect") for one in (radio, *radio.links))
    return not (fixed and quiet and perfect and scenario.run.jitter_s == 0)


def telling_samples(results: ForeignResults) -> dict[str, tuple[float, ...]]:
    """Return the samples of all metrics that tell replications apart."""
    count = max((len(q.samples) for q in results.quantities.values()), default=0)
    return {
        name: q.samples
        for name, q in results.quantities.items()
        if len(q.samples) == count > 1 and any(q.samples) and name.startswith((*CONTINUOUS, "good", "thr"))
    }


def copies(rows: Iterable[object]) -> list[tuple[int, int]]:
    """Return the pairs of equal rows, by their numbers from 1."""
    return [(a, b) for (a, one), (b, other) in combinations(enumerate(rows, 1), 2) if one == other]


def shared_streams(
    results: ForeignResults, scenario: Scenario, simulated: Mapping[str, np.ndarray]
) -> Iterator[Finding]:
    """Yield the finding on replications that are copies of each other.

    Where few things happen in a run, replications are equal by chance. By Markov's inequality the share of
    equal pairs is 100 times the expected one with a probability of 1 % at most; the share among our pairs
    stands for the expected one.
    """
    telling = telling_samples(results)
    varying = [name for name, samples in telling.items() if len(set(samples)) > 1]
    if not telling or not is_random(scenario):
        return
    if varying and (len(varying) < 2 or not any(name.startswith(CONTINUOUS) for name in varying)):
        return
    theirs = list(zip(*telling.values(), strict=True))
    found, count = copies(theirs), len(theirs)
    share = len(found) / math.comb(count, 2)
    status, text = "passed", f"no two of {count} replications are copies"
    if found and share <= 100 * _equal_in_ours(simulated, telling):
        text = "some replications are alike, as some of ours are"
    elif found and not varying:
        status = "failed"
        text = (
            f"all {count} replications are identical: they share one random stream (the seed does not "
            "change), so there is one replication and no interval"
        )
    elif found:
        (a, b), more = found[0], f" (and {len(found) - 1} more pairs)" if len(found) > 1 else ""
        status = "failed"
        text = (
            f"replications {a} and {b}{more} are identical in {len(varying)} metrics: they share a "
            "random stream"
        )
    yield Finding("replications", status, text)


def _equal_in_ours(ours: Mapping[str, np.ndarray], theirs: Mapping[str, Sequence[float]]) -> float:
    """Return the share of equal pairs among our replications, in the digits that theirs have."""
    count = max((len(values) for values in ours.values()), default=0)
    columns = []
    for name, samples in theirs.items():
        if name in ours and len(ours[name]) == count:  # else some replications have no observation
            digits = max(len(f"{x:.15e}".split("e")[0].rstrip("0")) - 1 for x in samples)
            columns.append([f"{x:.{digits}g}" for x in ours[name]])
    return len(copies(zip(*columns, strict=True))) / max(1, math.comb(count, 2))


def check_spread(
    results: ForeignResults, simulated: Mapping[str, np.ndarray], rules: Rules
) -> tuple[Finding, ...]:
    """Compare the variance between their replications with ours by Fisher's F test, one-sided.

    Args:
        results: read from the file.
        simulated: our samples.
        rules: confidence of all metrics together, and how long our runs are; where nothing is random, narrow
            intervals are right.
    """
    if not rules.random:
        return ()
    narrow = {}
    for name in WATCHED:
        ours, quantity = simulated.get(name), results.quantities.get(name)
        if quantity is None or ours is None or len(ours) < 2:
            continue
        if math.isclose(ours.min(), ours.max(), rel_tol=1e-9):  # nothing in the scenario is random
            continue
        if (own := quantity.spread(rules.runs)) is None:
            continue
        variance, count = own
        ratio = math.inf if variance == 0 else float(ours.var(ddof=1)) / variance
        p = stats.f.sf(ratio, len(ours) - 1, max(1, count - 1))
        if ratio > LEAST_RATIO**2 and p < (1 - rules.confidence) / len(WATCHED):
            narrow[name] = math.sqrt(ratio)
    if not narrow:
        return ()
    shown = ", ".join(
        f"{name} {'does not vary' if math.isinf(ratio) else f'{ratio:.3g} times'}"
        for name, ratio in narrow.items()
    )
    text = (
        f"replications vary less than ours of {rules.seconds:g} s ({shown}): unless their runs are far "
        "longer, the intervals are too optimistic, as intervals from correlated values or a shared "
        "random stream are"
    )
    return (Finding("intervals", "doubtful", text),)


ROUNDING = 0.002
"""Relative error that rounded numbers may have."""
EDGES = 0.03
"""Relative error of balances over a finite run, at whose ends packets are under way."""
WINDOW_BIAS = 0.10
"""The mean window over acknowledgements is not that over time, which the bound would need."""
BACKOFF_LEAST = 1.5
"""A timer that doubles has successive gaps in a ratio of 2; below this it does not."""
UNDER_WAY = "under_way_kbps"
"""The growth of the data under way, which may be negative."""
Problems = Iterator[tuple[float, str]]
"""Of each thing that was looked at: by how much a number is beyond its bound (NaN, or infinite, where either
is not known), and in words how it is wrong."""


def check_consistency(results: ForeignResults, scenario: Scenario) -> tuple[Finding, ...]:
    """Return one finding for each kind of check that the file has the numbers for, one for each violation."""
    scenario = in_tables(scenario)
    found: list[Finding] = []
    for name, (problems, sentence) in CHECKS.items():
        if looked := [one for one in problems(results, scenario) if math.isfinite(one[0])]:
            found += [Finding(name, "failed", problem) for excess, problem in looked if excess > 0] or [
                Finding(name, "passed", sentence)
            ]
    return tuple(found)


def _conservation(results: ForeignResults, scenario: Scenario) -> Problems:
    value = results.value
    sent, delivered, lost = (value(f"packets_{what}") for what in ("sent", "delivered", "lost"))
    inside = value("packets_in_flight")
    known = not math.isnan(inside)
    left = sent - delivered - lost - (inside if known else 0.0)
    flight = f" and {inside:g} in flight" if known else ""
    yield (
        max(abs(left) - ROUNDING, -inside) if known else -left - ROUNDING,
        f"packets are not conserved: {sent:g} sent, but {delivered:g} delivered, {lost:g} lost{flight}",
    )
    arrived, throughput = value("arrived_kbps"), value("throughput_kbps")
    text = f"{arrived:.4g} kbit/s arrived, and only {throughput:.4g} were sent"
    yield arrived - throughput * (1 + EDGES), text
    throughput, goodput = throughput - _grown_kbps(results), value("goodput_kbps")
    slack = results.slack("throughput_kbps") + results.slack("goodput_kbps")
    if UNDER_WAY not in results.quantities:  # up to a window, at each end of the measured time
        window_kbit = scenario.transport.receive_window_segments * scenario.transport.mss_bytes * 8 / 1000
        slack += window_kbit / (results.duration_s or scenario.run.duration_s)
    text = f"goodput {goodput:.4g} is above throughput {throughput:.4g} kbit/s"
    yield goodput - (throughput * (1 + EDGES) + slack), text
    loss = value("segment_loss")
    arrived = throughput * (1 - loss) if 0 <= loss <= 1 else math.nan
    yield (
        goodput - (arrived * (1 + EDGES) + slack),
        f"goodput {goodput:.4g} kbit/s is more than arrives: throughput less the segment loss gives "
        f"{arrived:.4g}",
    )
    whole = scenario.traffic.source == "greedy" or (
        scenario.traffic.message_bytes % scenario.transport.mss_bytes == 0
    )
    repeated = value("repeated_kbps")
    if math.isnan(repeated) and whole:
        repeated = value("retransmissions_per_s") * scenario.transport.mss_bytes * 8 / 1000
    yield (
        abs(throughput - goodput - repeated) - (EDGES * throughput + slack),
        f"throughput less goodput is {throughput - goodput:.4g} kbit/s, but retransmissions carry "
        f"{repeated:.4g}",
    )


def _little(results: ForeignResults, scenario: Scenario) -> Problems:
    """Look at single queues, and at all packets that wait: they are part of messages not yet delivered."""
    lines = [name for name in results.quantities if name.startswith("queue_packets[")]
    for name in lines:
        queue, length = name.partition("[")[2], results.value(name)
        rate, delay = (results.value(f"{what}[{queue}") for what in ("arrivals_per_s", "queue_delay_s"))
        expected = rate * delay
        slack = results.slack(name) + rate * results.slack(f"queue_delay_s[{queue}")
        yield (
            abs(length - expected) - (EDGES * max(length, expected) + slack),
            f"{name} = {length:.4g}, but {rate:.4g} packets/s that stay {delay:.4g} s make {expected:.4g}",
        )
    goodput, delay, load = results.value("goodput_kbps"), results.value("delay_s"), load_kbps(scenario)
    alone = scenario.transport.protocol == "none" and results.flow is None
    if not (alone and lines and load and goodput > (1 - EDGES) * load and delay > 0):
        return
    size, flows = scenario.traffic.message_bytes, topology(scenario).flows
    rate = len(flows) * goodput * 1000 / 8 / size * on_air(scenario, size).packets
    waiting, slack = sum(map(results.value, lines)), sum(map(results.slack, lines))
    yield (
        waiting - (rate * delay * (1 + EDGES) + slack + rate * results.slack("delay_s")),
        f"{waiting:.4g} packets wait, but {rate:.4g} packets/s that are delivered in {delay:.4g} s make "
        f"{rate * delay:.4g}: the delay leaves the wait out, as if counted from the start of service",
    )


def _slots(results: ForeignResults, scenario: Scenario) -> Problems:
    """Look at the slots without data: a visit that its limit does not end ends with a POLL and a NULL.

    The limit ends at most one visit for each `limit` data packets.
    """
    polling, plan = scenario.polling, topology(scenario)
    polls, used = results.value("polls_per_s"), results.value("slot_utilisation")
    limited = polling.discipline in ("e-limited", "exhaustive") and scenario.link.bearer == "br-edr"
    if not limited or plan.bridges or scenario.voice.reservation or not polls > 0:
        return
    slots = len(plan.piconets) / SLOT_S / sum(len(one.members) for one in plan.piconets) / polls
    packets = slots * used / min(packet_type(name).slots for name in scenario.link.packets)
    share = packets / polling.limit if polling.discipline == "e-limited" else 0.0
    least, free = 2 * (1 - share), slots * (1 - used)
    yield (
        least * (1 - EDGES - results.slack("polls_per_s") / polls) - free,
        f"POLL and NULL packets take {free:.3g} slots of a visit, but at least {least:.3g} are needed: a "
        "POLL or a NULL slot is forgotten in each exchange",
    )


def _ranges(results: ForeignResults, scenario: Scenario) -> Problems:
    flows = len(topology(scenario).flows)
    for name, quantity in results.quantities.items():
        metric, value = metric_name(name), quantity.value
        if name != UNDER_WAY:
            yield -value, f"{name} = {value:.4g} is negative"
        if metric in METRICS and METRICS[metric].unit == "1" and metric not in NO_SHARES:
            yield value - (1 + ROUNDING), f"{name} = {value:.4g} is above 1"
        if name == "fairness" and value >= 0:
            text = f"fairness = {value:.4g} is below 1/{flows}, the least that Jain's index can be"
            yield (1 - ROUNDING) / flows - value, text
        if metric == "transmissions_per_packet" and value >= 0:
            yield 1 - ROUNDING - value, f"{name} = {value:.4g}: a packet is transmitted once at least"


def _orders(results: ForeignResults, scenario: Scenario) -> Problems:
    value = results.value
    chains = [
        ("rtt_min_s", "rtt_p50_s", "rtt_p90_s", "rtt_p95_s", "rtt_p99_s", "rtt_max_s"),
        ("rtt_min_s", "rtt_s", "rtt_max_s"),
        *(
            tuple(f"{what}_p{p}_s" for p in (50, 90, 95, 99))
            for what in ("delay", "session_time")
        ),
        ("window_segments", "cwnd_segments"),
    ]  # fmt: skip
    for chain in chains:
        for low, high in pairwise(name for name in chain if not math.isnan(value(name))):
            text = f"{low} = {value(low):.4g} is above {high} = {value(high):.4g}"
            yield value(low) - value(high) * (1 + ROUNDING), text
    again, fast = value("retransmissions_per_s"), value("fast_retransmits_per_s")
    causes = value("timeouts_per_s") + (0.0 if math.isnan(fast) else fast)
    yield (
        causes - (again * (1 + EDGES) + results.slack("retransmissions_per_s") + ROUNDING),
        f"{again:.4g} retransmissions/s are fewer than the {causes:.4g}/s timeouts and fast "
        "retransmits that each cause one",
    )
    if scenario.transport.protocol == "tcp":
        window, most = value("window_segments"), scenario.transport.receive_window_segments
        text = f"window_segments = {window:.4g} is above the receive window of {most}"
        yield window - most * (1 + ROUNDING), text


def _rates(results: ForeignResults, scenario: Scenario) -> Problems:
    arrived, goodput = results.value("arrived_kbps"), results.value("goodput_kbps")
    slack, place = results.slack("goodput_kbps"), None if results.flow is None else results.flow - 1
    most = capacity(scenario).most_kbps(place)
    on_air = scenario.network.topology != "custom" or scenario.network.piconet_list
    types = f" with {', '.join(scenario.link.packets)}" if on_air and scenario.link.bearer == "br-edr" else ""
    beyond = f"is above the {most:.4g} kbit/s for which devices and links have time{types}"
    yield arrived - most * (1 + EDGES), f"the arrived data, {arrived:.4g}, {beyond}"
    goodput += min(_grown_kbps(results), 0.0)  # data under way at the start need not have had this time
    if (load := load_kbps(scenario, results.flow)) is not None:
        duration_s = results.duration_s or scenario.run.duration_s
        messages = load * 1000 / 8 * duration_s / scenario.traffic.message_bytes
        yield (
            goodput - (load * (1 + 4 / math.sqrt(max(messages, 1.0))) + slack),
            f"goodput {goodput:.4g} is above the offered load of {load:.4g} kbit/s, further than "
            "chance allows",
        )
    yield goodput - most * (1 + EDGES), f"goodput {goodput:.4g} {beyond}"
    windows = window_kbps(scenario)
    allowed = float(windows.mean() if place is None else windows[place])
    text = f"goodput {goodput:.4g} is above the {allowed:.4g} kbit/s of a window in each least round trip"
    yield goodput - allowed * (1 + EDGES), text
    transport, rtt = scenario.transport, results.value("rtt_s")
    if transport.protocol != "tcp" or not rtt > 0 or math.isnan(goodput):
        return
    window = results.value("window_segments")
    segments = transport.receive_window_segments if math.isnan(window) else window
    waiting = transport.ack_every_segments - 1 if transport.delayed_ack else 0
    # measured is the segment that waits longest for a shared acknowledgement; the mean of all is shorter
    kilobits = (segments + waiting) * transport.mss_bytes * 8 / 1000
    bound = kilobits / max(rtt - results.slack("rtt_s"), 0.1 * rtt)
    yield (
        goodput - (bound * (1 + WINDOW_BIAS) + slack),
        f"goodput {goodput:.4g} is above window over round trip: {segments:.3g} segments"
        + (f", and {waiting} for a shared acknowledgement," if waiting else "")
        + f" in {rtt:.4g} s give {bound:.4g} kbit/s",
    )
    timeouts = results.value("timeouts_per_s")
    yield (
        timeouts - (1 + EDGES) / transport.min_rto_s,
        f"timeouts_per_s = {timeouts:.4g}: with a least timeout of {transport.min_rto_s:g} s a "
        f"flow has at most {1 / transport.min_rto_s:g}",
    )


def unused_window(results: ForeignResults, scenario: Scenario) -> list[str]:
    """Return a sentence where greedy TCP has less under way than its receive window, by Little's law."""
    flows = [scenario.of_flow(flow.spec) for flow in topology(scenario).flows]
    flows = flows if results.flow is None else flows[results.flow - 1 : results.flow]
    if any(one.traffic.source != "greedy" or one.transport != flows[0].transport for one in flows):
        return []
    t, values = flows[0].transport, results.value("goodput_kbps") * results.value("rtt_s")
    segments, window = values * 1000 / 8 / t.mss_bytes, t.receive_window_segments
    if t.protocol != "tcp" or not segments * (1 + WINDOW_BIAS) < window:
        return []
    return [
        f"goodput times round trip is {segments:.3g} segments of {t.mss_bytes} bytes, and the window has "
        f"{window}: the sender lost segments, paused or had a smaller window, or round trips are other ones"
    ]


def load_kbps(scenario: Scenario, flow: int | None = None) -> float | None:
    """Return the offered load of a flow, or the mean over flows; None where it does not bound the goodput.

    It does not for greedy, request-reply and file sources, for loads that change, and for IBP sources, whose
    bursts make the load itself vary from run to run.
    """
    plans = topology(scenario).flows
    asked = plans if flow is None else (plans[flow - 1],)
    sources = [scenario.of_flow(plan.spec).traffic for plan in asked]
    if any(one.source not in ("poisson", "periodic") or one.load_schedule for one in sources):
        return None
    return sum(one.load_kbps for one in sources) / len(sources)


def _grown_kbps(results: ForeignResults) -> float:
    """Return by how much the data under way has grown over the measured time, 0 if unknown."""
    return results.quantities[UNDER_WAY].value if UNDER_WAY in results.quantities else 0.0


def _backoff(results: ForeignResults, scenario: Scenario) -> Problems:
    """Look whether a timer that shall double does so, until it reaches its limit."""
    transport = scenario.transport
    gaps = [(a, b) for a, b in results.backoff_gaps if a < 0.45 * transport.max_rto_s and a > 0]
    if not transport.rto_backoff or len(gaps) < 3:
        return
    ratio = median(b / a for a, b in gaps)
    yield (
        BACKOFF_LEAST - ratio,
        f"the retransmission timer does not double: {len(gaps)} times a segment timed out again, and "
        f"the gap was {ratio:.2g} times the one before (median; {median(b for _, b in gaps):.3g} s)",
    )


CHECKS = {
    "conservation": (_conservation, "every packet sent was delivered, lost or is under way"),
    "Little's law": (_little, "queue lengths are arrival rate times delay"),
    "slot budget": (_slots, "POLL and NULL packets have their slots"),
    "range": (_ranges, "shares lie between 0 and 1, and nothing is negative"),
    "order": (_orders, "no percentile is above a higher one, no used window above cwnd"),
    "rate bounds": (
        _rates,
        f"goodput is within load, capacity (+{EDGES:.0%}) and window over round trip (+{WINDOW_BIAS:.0%})",
    ),
    "back-off": (_backoff, "successive timeouts of a segment wait twice as long"),
}
"""Kinds of checks: the function that looks, and a sentence where nothing is wrong."""
