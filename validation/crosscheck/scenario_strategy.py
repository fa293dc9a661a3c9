"""Random small scenarios over the whole vocabulary of the simulator, for property-based tests."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from btqueue.scenario import Scenario, ScenarioError

BIT_ERROR_RATES = (0.0, 1e-6, 2e-5, 3e-4, 0.01)
PACKETS = (
    ("DH5", "DH3"),
    ("DH5", "DH3", "DH1"),
    ("DM5", "DM3", "DM1"),
    ("DH1",),
    ("DM3", "DH5"),
    ("3-DH5", "3-DH3", "3-DH1"),
)
ADAPTATION_PACKETS = (("DH5", "DM5", "DM3", "DM1"), ("DH5", "DH3"), ("DM1",), ("3-DH5", "2-DH5", "DH5"))


def chosen(draw, *values):
    """Draw one of the values."""
    return draw(st.sampled_from(values))


def node_flow(draw, nodes, laws):
    """Draw a flow between two of the nodes, with some settings of its own."""
    source, target = draw(st.permutations(nodes))[:2]
    flow = {"from": source, "to": target}
    own = {
        "law": st.sampled_from(laws),
        "load_kbps": st.floats(1, 300),
        "message_bytes": st.integers(100, 9000),
        "variant": st.sampled_from(["tahoe", "reno", "newreno", "sack", "vegas"]),
        "receive_window_segments": st.integers(4, 40),
        "start_s": st.floats(0, 1),
    }
    for key, values in own.items():
        if draw(st.integers(0, 3)) == 0:
            flow[key] = draw(values)
    return flow


def outside_link(draw, number, source, target):
    """Draw an outside link."""
    link = {
        "name": f"x{number}",
        "from": source,
        "to": target,
        "kind": chosen(draw, "wired", "wlan", "cdpd", "other"),
        "delay_s": chosen(draw, 0.0, 0.003, 0.3),
        "jitter_s": chosen(draw, 0.0, 0.0, 0.01),
        "buffer_packets": chosen(draw, 1, 5, 1000),
        "loss": chosen(draw, 0.0, 0.01, 0.3),
        "header_bytes": chosen(draw, 0, 28),
    }
    if draw(st.booleans()):
        link |= {"loss_back": 0.1, "loss_block_bytes": 200}
    if draw(st.integers(0, 3)) == 0:
        link |= {"up_s": 0.5, "down_s": 0.2}
    if draw(st.integers(0, 3)) == 0:
        link["half_duplex"] = link["kind"] != "wlan"
    return link


@st.composite
def networks(draw, laws):
    """Draw a topology and flows that fit it."""
    shape = chosen(draw, "piconet", "piconet", "scatternet", "chain", "custom", "gateway")
    if shape == "chain":
        return {"topology": "chain", "hops": draw(st.integers(1, 5)), "bridge": chosen(draw, "SS", "MS")}
    if shape == "custom":
        return custom_network(draw, laws)
    network = {"topology": shape, "peripherals": draw(st.integers(1, 5))}
    if shape == "gateway":
        return gateway(draw, laws)
    network["flows"] = chosen(draw, "ring", "downlink", "uplink")
    if shape == "scatternet":
        network |= {"piconets": draw(st.integers(2, 4)), "bridge": chosen(draw, "SS", "MS")}
    if draw(st.booleans()) and (shape == "scatternet" or network["peripherals"] > 1):
        network["flows"] = "pairs"
    network["relay"] = chosen(draw, "packet", "segment")
    if draw(st.integers(0, 3)) == 0:
        network["active_flows"] = 1
    return network


def gateway(draw, laws):
    """Draw a piconet with outside hosts behind its central or a peripheral, also joined to each other."""
    peripherals = draw(st.integers(1, 3))
    names = ["c1", *(f"p1.{i}" for i in range(1, peripherals + 1))]
    hosts = [f"h{i}" for i in range(1, draw(st.integers(1, 3)) + 1)]
    links = [outside_link(draw, i, chosen(draw, *names), host) for i, host in enumerate(hosts)]
    if draw(st.integers(0, 2)) == 0:
        for link in links:
            link |= {"medium": "air", "kind": "wlan", "half_duplex": True, "header_bytes": 28}
            link |= {"up_s": 0.0, "down_s": 0.0}
    nodes = names + hosts
    flows = [node_flow(draw, nodes, laws) for _ in range(draw(st.integers(1, 4)))]
    return {"topology": "piconet", "peripherals": peripherals, "outside_links": links, "flows": flows}


def custom_network(draw, laws):
    """Draw two or three piconets joined by devices that are in two of them, SS or MS."""
    count = draw(st.integers(1, 3))
    piconets, before = [], []
    for k in range(count):
        members = [f"d{k}.{i}" for i in range(draw(st.integers(1, 3)))]
        if before:
            members.append(chosen(draw, *before))
        piconets.append({"name": f"P{k}", "central": f"m{k}", "peripherals": members})
        before = [*(name for name in members if name.startswith(f"d{k}")), f"m{k}"]
    nodes = sorted({name for p in piconets for name in (p["central"], *p["peripherals"])})
    flows = [node_flow(draw, nodes, laws) for _ in range(draw(st.integers(1, 4)))]
    relay = chosen(draw, "packet", "segment")
    return {"topology": "custom", "piconet_list": piconets, "flows": flows, "relay": relay}


@st.composite
def radios(draw):
    """Draw an error process."""
    rates = st.sampled_from(BIT_ERROR_RATES)
    radio = {
        "model": chosen(draw, "perfect", "constant", "gilbert-elliott", "alternating"),
        "bits": chosen(draw, "payload", "on-air"),
        "fading": chosen(draw, "per-link", "per-piconet"),
        "interferers": chosen(draw, 0, 0, 3),
        "colocated": chosen(draw, False, False, True),
    }
    if radio["model"] == "constant":
        if draw(st.booleans()):
            radio["ber"] = draw(rates)
        else:
            radio["per"] = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    elif radio["model"] != "perfect":
        radio["ber_good"], radio["ber_bad"] = sorted([draw(rates), draw(rates)])
    if radio["model"] == "alternating":
        radio["period_s"] = chosen(draw, 0.01, 0.5)
    return radio


@st.composite
def links(draw):
    """Draw packet types, repair and delays below L2CAP."""
    link = {
        "packets": list(chosen(draw, *PACKETS)),
        "segmentation": chosen(draw, "osu", "best-fit"),
        "arq": chosen(draw, "none", "unlimited", "unlimited", 1, 3),
        "l2cap_header_bytes": chosen(draw, 4, 0, 20),
        "l2cap_delay_s": chosen(draw, 0.0, 0.0, 0.002),
        "baseband_delay_s": chosen(draw, 0.0, 0.0, 0.001, 0.05),
    }
    if link["arq"] != "none":
        link["arq_feedback"] = chosen(draw, "reliable", "lossy")
        if draw(st.booleans()):
            link["flush_timeout_s"] = chosen(draw, 0.001, 0.1, 1.0)
    if draw(st.integers(0, 2)) == 0:
        link |= {
            "adaptation": "best",
            "adaptation_packets": list(chosen(draw, *ADAPTATION_PACKETS)),
            "adaptation_estimate": chosen(draw, "true-rate", "link-quality"),
            "quality_memory_s": chosen(draw, 0.0, 0.5),
        }
    elif draw(st.integers(0, 5)) == 0:
        link["adaptation"] = "thresholds"
    if draw(st.integers(0, 3)) == 0:
        link["node_buffer_bytes"] = chosen(draw, 100, 3000, 20_000)
    return link


@st.composite
def transports(draw):
    """Draw a transport protocol with its options."""
    window = draw(st.integers(1, 40))
    transport = {
        "protocol": chosen(draw, "tcp", "tcp", "tcp", "none"),
        "variant": chosen(draw, "tahoe", "reno", "newreno", "sack", "vegas"),
        "mss_bytes": chosen(draw, 1460, 536, 100),
        "receive_window_segments": window,
        "initial_window_segments": draw(st.integers(1, min(window, 4))),
        "initial_ssthresh_segments": draw(st.integers(2, 64)),
        "min_rto_s": chosen(draw, 1.0, 0.2),
        "clock_granularity_s": chosen(draw, 0.0, 0.1),
        "ack_every_segments": draw(st.integers(1, 4)),
        "ack_clock": chosen(draw, "timer", "tick"),
        "ack_path": chosen(draw, "queued", "queued", "direct"),
        "loss_detection": chosen(draw, "duplicates", "rack"),
        "timer_tick_s": chosen(draw, 0.0, 0.004),
        "hystart": chosen(draw, False, True),
        "loss_probes": chosen(draw, False, True),
        "frto": chosen(draw, False, True),
        "rto_variation": chosen(draw, "smoothed", "largest"),
        "vegas_adjustment": chosen(draw, "per-ack", "per-rtt"),
        "sack_blocks": draw(st.integers(1, 4)),
        "tcp_delay_s": chosen(draw, 0.0, 0.0, 0.004),
        "ip_delay_s": chosen(draw, 0.0, 0.0, 0.002),
    }
    for key in (
        "rto_backoff",
        "limited_transmit",
        "rate_reduction",
        "window_limited_growth",
        "hold_ssthresh",
        "delayed_ack",
        "piggyback",
        "timestamps",
    ):
        transport[key] = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        transport["send_buffer_segments"] = draw(st.integers(1, 50))
    if transport["loss_detection"] == "rack" and transport["variant"] in ("newreno", "sack"):
        transport["buffers"] = chosen(draw, "fixed", "tuned") if transport["protocol"] == "tcp" else "fixed"
    return transport


def session_transport(draw, transport):
    """Draw what goes with request-reply sessions: a handshake, or CentaurusComm instead of TCP."""
    if draw(st.booleans()):
        return transport | {
            "protocol": "centaurus",
            "centaurus_packet_bytes": chosen(draw, 64, 20),
            "centaurus_watchdog_s": chosen(draw, 30.0, 0.5),
            "centaurus_early_data": draw(st.booleans()),
            "centaurus_start": chosen(draw, "peer", "polled"),
            "centaurus_worker_s": chosen(draw, 0.0, 0.05),
        }
    handshake = draw(st.booleans())
    return transport | {
        "protocol": "tcp",
        "handshake": handshake,
        "connection_per_session": handshake and draw(st.booleans()),
    }


@st.composite
def traffics(draw, sessions, arrival_file: Path | None):
    """Draw the sources."""
    laws = ["poisson", "greedy", "ibp", "periodic", *(["file"] if arrival_file else [])]
    traffic = {
        "source": "request-reply" if sessions else chosen(draw, *laws),
        "load_kbps": draw(st.floats(1, 500)),
        "message_bytes": draw(st.integers(100, 5000)),
        "two_way": draw(st.booleans()),
        "start_s": chosen(draw, 0.0, 0.3),
        "request_bytes": draw(st.integers(1, 3000)),
        "reply_bytes": draw(st.integers(1, 6000)),
        "goodbye_bytes": chosen(draw, 0, 30, 2000),
        "pause_s": chosen(draw, 0.0, 0.1),
    }
    if arrival_file:
        traffic |= {"arrival_file": str(arrival_file), "file_period_s": chosen(draw, None, 1.0)}
    if draw(st.integers(0, 3)) == 0:
        traffic["load_schedule"] = [{"at_s": 0.5, "load_kbps": 300.0}, {"at_s": 1.0, "load_kbps": 10.0}]
    if sessions and draw(st.booleans()):
        traffic["application_timeout_s"] = chosen(draw, 0.05, 1.0)
    return traffic


@st.composite
def dictionaries(draw, arrival_file: Path | None = None):
    """Draw the tables of a scenario; a few of them contradict themselves."""
    sessions = draw(st.integers(0, 3)) == 0
    transport = draw(transports())
    if sessions:
        transport = session_transport(draw, transport)
    laws = ["request-reply"] if sessions else ["poisson", "greedy", "ibp", "periodic"]
    if transport["protocol"] == "none":
        laws = ["poisson", "ibp", "periodic"]
    traffic = draw(traffics(sessions, arrival_file))
    if transport["protocol"] == "none" and traffic["source"] == "greedy":
        traffic["source"] = "periodic"
    voice = chosen(draw, {}, {}, {"packet": "HV3", "links": draw(st.integers(1, 3))}, {"packet": "HV2"})
    data = {
        "network": draw(networks(laws)),
        "radio": draw(radios()),
        "link": draw(links()),
        "flow_control": {
            "enabled": draw(st.booleans()),
            "token_rate_kbps": draw(st.floats(5, 700)),
            "bucket_bytes": draw(st.integers(1021, 6000)),
            "buffer_packets": draw(st.integers(1, 100)),
            "baseband_packets": draw(st.integers(1, 60)),
            "drop": chosen(draw, "packet", "segment"),
            "charge": chosen(draw, "payload", "actual"),
            "central_buffer_packets": chosen(draw, None, 1, 30),
        },
        "polling": {
            "discipline": chosen(
                draw,
                *("e-limited", "1-limited", "exhaustive", "gated", "round-robin"),
                *("slq", "ldq", "fep", "lwrr", "prc-lwrr"),
            ),
            "limit": draw(st.integers(1, 12)),
            "max_weight": draw(st.integers(1, 6)),
            "bridge_limit": chosen(draw, None, 1, 9),
            "bridge_buffer_packets": chosen(draw, None, 1, 30),
            "bridge_schedule": chosen(draw, "walk-in", "walk-in", "sniff", "pcss", "lcs"),
            "bridge_patience_s": chosen(draw, 0.0, 0.05),
            "residence": chosen(draw, "visit", "cycle", "complete"),
            "residence_cycles": draw(st.integers(1, 3)),
            "rendezvous_s": chosen(draw, 0.1, 0.02),
            "longest_rendezvous_s": chosen(draw, None, 0.1, 3.0),
            "switch_delay": draw(st.booleans()),
        },
        "voice": voice,
        "traffic": traffic,
        "transport": transport,
        "run": {"seed": draw(st.integers(0, 2**40)), "jitter_s": chosen(draw, 0.0, 0.0, 0.01)},
    }
    if voice:  # with voice only short packets fit
        data["link"]["packets"] = (
            ["DH1"] if voice["packet"] == "HV2" or voice["links"] > 1 else ["DM3", "DM1"]
        )
        data["link"]["adaptation_packets"] = ["DM1"]
        data["link"]["adaptation"] = chosen(draw, "fixed", "best")
    data["network"] = dict(data["network"])
    if data["link"].get("adaptation", "fixed") != "fixed":
        data["network"].pop("relay", None)
    return {table: without_none(keys) for table, keys in data.items()}


def without_none(table):
    """Leave out the keys that are not set."""
    return {key: value for key, value in table.items() if value is not None}


def scenarios(arrival_file: Path | None = None) -> st.SearchStrategy[Any]:
    """Return a strategy for scenarios that the simulator can run."""

    def valid(data):
        try:
            return Scenario.from_dict(data)
        except ScenarioError:
            return None

    return dictionaries(arrival_file).map(valid).filter(lambda scenario: scenario is not None)
