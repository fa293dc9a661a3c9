"""Events and exchanges of Bluetooth Low Energy, against what paper and pencil give; times by the air tables.

A full PDU at 2M takes 1,048 us and an empty one 44: an exchange is 1,242 us, the next begins 1,392 later.
"""

from typing import Any

import numpy as np
import pytest

import btqueue as bt
from btqueue.scenario import Scenario
from btqueue.scenario.metrics import Results
from btqueue.simulator.construction.state import new_state

BASE: dict[str, Any] = {
    "link.bearer": "le",
    "le.ip": "none",
    "le.interval_s": 0.01,
    "le.phy": "2M",
    "le.transfer": "notifications",
    "network.peripherals": 1,
    "network.flows": "uplink",
    "traffic.source": "greedy",
    "traffic.message_bytes": 244,
    "transport.protocol": "none",
    "transport.mss_bytes": 244,
    "run.duration_s": 20.0,
    "run.warmup_s": 1.0,
    "run.replications": 2,
}
FULL = 244 * 8 / 10
"""Goodput (kbit/s) of one full PDU an event."""


def simulated(**changes: Any) -> Results:
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return bt.simulate(Scenario().changed(BASE | dotted))


RESERVED = {"network__peripherals": 2, "le__event_length_s": 0.0025}
COC = {"le__transfer": "coc", "traffic__message_bytes": 245, "transport__mss_bytes": 245}
ISO = {"le__iso_interval_s": 0.01, "le__iso_length_s": 0.005}
DEAF = {"radio__model": "constant", "radio__ber": 0.5, "radio__bits": "on-air"}
SLOW = {"traffic__source": "periodic", "traffic__load_kbps": 20.0, "link__flush_timeout_s": 0.05}
IDLE = {"traffic__source": "poisson", "traffic__load_kbps": 1e-4}

CASES = {
    # the first of two reservations of 2.5 ms ends with the second, which may run on to the next interval
    "extended": (RESERVED, {"goodput_kbps": [FULL, 5 * FULL]}),
    "reserved": (RESERVED | {"le__event_extension": False}, {"goodput_kbps": FULL}),
    # the sixth exchange of the second link ends 1,798 + 5 * 1,392 + 1,242 us later: at the first one's anchor
    "to the next anchor": (RESERVED | {"le__event_length_s": 0.001798}, {"goodput_kbps": [FULL, 6 * FULL]}),
    # 1,048 + 150 + 1,048 us, and 2,396 from one exchange to the next: four fit into 10 ms
    "both ways": ({"traffic__two_way": True}, {"goodput_kbps": 4 * FULL, "air_share": 4 * 2 * 0.1048}),
    # A credit returns in the central's PDU of the next exchange, which is 92 us long, too late for the
    # answer. A K-frame of 251 bytes takes 1,392 us to the next exchange, that exchange 92 + 150 + 44 + 150:
    # a K-frame every 1,828 us, the sixth ends at 5 * 1,828 + 1,242 us, beyond 10 ms.
    "one credit": (COC | {"le__credits": 1}, {"goodput_kbps": 5 * 245 * 8 / 10}),
    # of 10 ms the last five are taken: three exchanges fit; a link whose anchor is in them has no event
    "isochronous": (ISO, {"goodput_kbps": 3 * FULL}),
    "anchor in isochronous time": (
        ISO | {"network__peripherals": 2, "le__event_length_s": 0.005},
        {"goodput_kbps": [3 * FULL, 0.0], "events_missed": [0.0, 1.0]},
    ),
    # lost after the supervision time, again and again
    "deaf": (
        DEAF | {"le__supervision_timeout_s": 0.1},
        {"disconnections_per_h": 36_000, "goodput_kbps": 0.0},
    ),
    "flushed": (SLOW | {"radio__model": "constant", "radio__per": 1.0}, {"loss_arq": 1.0}),
    # the clock of the central is wrong for all of its links, and for the length of their events
    "clock of the central": (
        RESERVED | {"network__peripherals": 4, "le__clock_ppm": 500.0},
        {"events_missed": 0.0},
    ),
}


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
def test_events_are_those_of_paper_and_pencil(changes, expected):
    found = simulated(**changes)
    for name, value in expected.items():
        exact = name in ("events_missed", "loss_arq")
        values = found[name].values
        np.testing.assert_allclose(values, np.full(values.shape, value), rtol=0.0 if exact else 1e-3)


def test_an_event_has_one_channel():
    """On 18 of 37 channels everything gets through, on the others nothing: 4 standard errors, 1 in 16,000."""
    classes = [{"channels": 18, "ber": 0.0}, {"channels": 19, "ber": 0.5}]
    found = simulated(le__channel_classes=classes, run__replications=10)
    share = found.goodput_kbps.values.mean() / (7 * FULL)
    assert abs(share - 18 / 37) < 4 * np.sqrt(18 * 19 / 37**2 / 20_000)


def test_a_segment_that_is_young_enough_is_sent_again():
    kept = simulated(**SLOW, radio__model="constant", radio__per=0.3)
    assert not kept.loss_arq.values.any()
    assert (kept.transmissions_per_packet.values > 1.2).all()


def test_a_peripheral_listens_longer_where_clocks_are_bad():
    """An empty event: 44 us sent, 44 heard, a space of 150; and 2 x 500 ppm of 10 ms more."""
    good, bad = (simulated(**IDLE, le__clock_ppm=ppm).current_ma.values for ppm in (0.0, 500.0))
    assert good == pytest.approx((3.0 + 5.3 * 0.044 + 5.4 * 0.044 + 0.15) / 10 + 0.002, rel=1e-3)
    assert bad - good == pytest.approx(5.4 * 0.001, rel=2e-3)


def test_each_link_draws_its_interval_on_the_grid():
    changes = {"network.peripherals": 20, "le.interval_spread_s": 0.005, "le.anchors": "random"}
    intervals = new_state(Scenario().changed(BASE | changes), 0).le_links.interval / 1_250_000
    assert set(intervals) <= set(range(4, 13))
    assert len(set(intervals)) > 3


def test_clocks_of_centrals_differ_and_the_links_of_one_share_its_clock():
    changes = {"network.topology": "scatternet", "network.flows": "uplink", "le.clock_ppm": 100.0}
    links = new_state(Scenario().changed(BASE | {"network.peripherals": 2} | changes), 0).le_links
    assert len(set(links.pace)) == 2
    assert (abs(links.pace - 1.0) <= 1e-4).all()
    assert all(links.pace[link.first_of_central] == link.pace for link in links)


def test_subrated_events_and_skipped_ones_are_not_missed():
    """One of three events is used, and of these one of two is skipped: a wake every 60 ms."""
    found = simulated(**IDLE, energy__event_uc=600.0, le__subrate=3, le__latency=1)
    assert found.current_ma.values == pytest.approx(10.0, rel=0.01)
    assert not found.events_missed.values.any()
