"""Tables 2.1, 4.1, 5.2, 6.1 and 6.2 of R. Venugopal's thesis (University of Manitoba, 2006).

A test asserts the printed digits where the print follows from the thesis's own parameters.  Where it does
not, the test states the print, shows that the stated parameters do not give it, and shows what explains it:

* the good-state rows of tables 4.1 and 6.1 were evaluated at a bit error rate of 6.879e-5 (6.879e-6), not at
  the stated 6.8979e-5 (6.8979e-6);
* rows 2 to 6 of table 5.2 lie 0.6 to 5 percent below the thesis's own formula (section 5.3);
* three rates of table 2.1 are not forward plus reverse rate.
"""

from typing import Any

import numpy as np
import pytest

from btqueue.baseband import PACKET_TYPES, SLOT_S, packet_type, packet_types, segment
from btqueue.channel import TwoStateChannel, payload_error_rate, train_success

DH5, DH3 = packet_types(["DH5", "DH3"])
DATA = tuple(fragment.packet for fragment in segment(1504, [DH5, DH3]))
ACK = tuple(fragment.packet for fragment in segment(44, [DH5, DH3]))

GAPS_S = [SLOT_S] * (len(DATA) - 1) + [0.1]
"""One reply slot between packets, one hundred milliseconds to the acknowledgement."""

STATED_GOOD, STATED_BAD = 6.8979e-5, 1.263e-3
USED_GOOD = 6.879e-5

# table 4.1 (original rates) and table 6.1 (a tenth of them): type, printed in the good and in the bad state
TABLE_4_1 = {"DH5": (0.1702, 0.96753), "DH3": (0.09581, 0.84279)}
TABLE_6_1 = {"DH5": (0.018483, 0.29004), "DH3": (0.01002, 0.168825)}

# table 5.2: mean good and bad sojourn in s, printed success of segment and ACK over two hops, and what the
# formula gives exactly and with the printed error rates
TABLE_5_2 = [
    (0.4375, 0.0558, 0.04043, 0.040217, 0.040423),
    (0.4475, 0.0458, 0.04922, 0.051442, 0.051705),
    (0.4575, 0.0358, 0.06335, 0.065473, 0.065809),
    (0.4675, 0.0258, 0.08112, 0.082933, 0.083360),
    (0.4775, 0.0158, 0.10339, 0.104569, 0.105108),
    (0.4875, 0.0058, 0.13116, 0.131269, 0.131946),
    (0.4933, 0.0, 0.15026, 0.149483, 0.150254),
]
FOLLOWS_FORMULA = {0, 6}

# table 6.2: hops, printed success of segment and ACK, what the formula gives exactly
TABLE_6_2 = [(2, 0.59622, 0.595936), (4, 0.355478, 0.355140)]
LAST = 5.1e-7
"""Half of the last digit of six."""


def success(good_s: float, bad_s: float, *, scale: float = 1.0, **options: Any) -> float:
    """Return the success of segment and ACK at the stated rates."""
    rates = {"ber_good": scale * STATED_GOOD, "ber_bad": scale * STATED_BAD}
    channel = TwoStateChannel(**rates, good_s=good_s, bad_s=bad_s)
    return float(train_success(channel, [*DATA, *ACK], gap_s=GAPS_S, **options))


def _formula(per_dh5: np.ndarray, per_dh3: np.ndarray, good_s: float, bad_s: float, hops: int) -> float:
    """Section 5.3: s(DH5)^(4 hops) s(DH3)^(2 hops), s averaged over the two states."""
    weights = np.array([good_s, bad_s]) / (good_s + bad_s)
    return float((weights @ (1 - per_dh5)) ** (4 * hops) * (weights @ (1 - per_dh3)) ** (2 * hops))


def _digits(printed: float) -> int:
    return len(f"{printed:.10f}".rstrip("0").split(".")[1])


# ---------------------------------------------------------------- table 2.1


# printed, forward plus reverse
TABLE_2_1 = {
    "DM1": (217.6, 217.6), "DM5": (514.1, 514.1), "DH5": (780.8, 780.8),
    "DH1": (341.6, 345.6), "DM3": (516.2, 441.6), "DH3": (692.0, 672.0),
}  # fmt: skip


def _asymmetric_total_kbps(name: str) -> float:
    """Forward rate plus that of the one-slot type of the same family in the reply."""
    forward = packet_type(name)
    reply = PACKET_TYPES[name[:2] + "1"]
    return forward.asymmetric_kbps + reply.payload_bits / ((forward.slots + 1) * SLOT_S) / 1e3


@pytest.mark.parametrize("name", TABLE_2_1)
def test_table_2_1_has_three_rows_that_are_misprinted(name: str) -> None:
    printed, right = TABLE_2_1[name]
    assert _asymmetric_total_kbps(name) == pytest.approx(right, abs=0.05)
    assert printed == right or abs(right - printed) >= 4


def test_table_2_1_dm3_prints_the_symmetric_total() -> None:
    # 516.27 cut off, not rounded, to 516.2
    assert int(20 * packet_type("DM3").symmetric_kbps) / 10 == TABLE_2_1["DM3"][0]


# ---------------------------------------------------------------- tables 4.1 and 6.1


@pytest.mark.parametrize(
    ("table", "scale", "name", "right"),
    [
        (TABLE_4_1, 1.0, "DH5", 0.170621),
        (TABLE_4_1, 1.0, "DH3", 0.096057),
        (TABLE_6_1, 0.1, "DH5", 0.018533),
        (TABLE_6_1, 0.1, "DH3", 0.010048),
    ],
    ids=["4.1-DH5", "4.1-DH3", "6.1-DH5", "6.1-DH3"],
)
def test_per_tables_follow_from_the_stated_rates_but_for_the_good_state(
    table: dict[str, tuple[float, float]], scale: float, name: str, right: float
) -> None:
    """Printed is the good state at another rate, `USED_GOOD`; `right` is it at the stated one."""
    packet, (printed, printed_bad) = packet_type(name), table[name]
    stated, used, bad = (
        float(payload_error_rate(packet, scale * rate)) for rate in (STATED_GOOD, USED_GOOD, STATED_BAD)
    )
    assert round(bad, _digits(printed_bad)) == printed_bad
    assert stated == pytest.approx(right, abs=LAST)
    assert stated - printed > 2 * 10.0 ** -_digits(printed)
    assert round(used, _digits(printed)) == printed
    # the print itself, read backwards
    behind = 1 - (1 - printed) ** (1 / packet.payload_bits)
    assert behind == pytest.approx(scale * USED_GOOD, rel=1e-4)


# ---------------------------------------------------------------- table 5.2


@pytest.mark.parametrize("row", range(7))
def test_table_5_2_against_the_formula(row: int) -> None:
    good_s, bad_s, printed, exact, with_printed_rates = TABLE_5_2[row]
    assert success(good_s, bad_s, hops=2, observation="published") == pytest.approx(exact, abs=LAST)
    computed = _formula(np.array(TABLE_4_1["DH5"]), np.array(TABLE_4_1["DH3"]), good_s, bad_s, hops=2)
    assert computed == pytest.approx(with_printed_rates, abs=LAST)
    if row in FOLLOWS_FORMULA:
        assert abs(computed - printed) < 1e-5
    else:
        assert 0.005 < (computed - printed) / printed < 0.06


def test_table_5_2_middle_rows_would_need_another_bad_state() -> None:
    """Rows 2 to 6 come close (3e-5) if the bad state's rate is 1.635e-3, which then misses row 1."""
    bad = [float(payload_error_rate(packet, 1.635e-3)) for packet in (DH5, DH3)]
    errors = []
    for good_s, bad_s, printed, *_ in TABLE_5_2:
        per_dh5, per_dh3 = (
            np.array([TABLE_4_1[name][0], own]) for name, own in zip(("DH5", "DH3"), bad, strict=True)
        )
        errors.append(abs(_formula(per_dh5, per_dh3, good_s, bad_s, hops=2) - printed))
    assert max(errors[1:6]) < 4e-5
    assert errors[0] > 1e-3


# ---------------------------------------------------------------- table 6.2


@pytest.mark.parametrize(("hops", "printed", "exact"), TABLE_6_2)
def test_table_6_2_follows_from_the_printed_error_rates(hops: int, printed: float, exact: float) -> None:
    computed = _formula(np.array(TABLE_6_1["DH5"]), np.array(TABLE_6_1["DH3"]), 0.4375, 0.0558, hops)
    assert computed == pytest.approx(printed, abs=1.5e-6)
    stated = success(0.4375, 0.0558, scale=0.1, hops=hops, observation="published")
    assert stated == pytest.approx(exact, abs=LAST)


@pytest.mark.parametrize(
    ("scale", "printed", "right"), [(1.0, 0.04043, 0.093573), (0.1, 0.59622, 0.658475)], ids=["5.2", "6.2"]
)
def test_independence_assumption_underestimates(scale: float, printed: float, right: float) -> None:
    """One hundred milliseconds to the ACK, one reply slot between packets: the state outlives the segment."""
    found = success(0.4375, 0.0558, scale=scale, hops=2)
    assert found == pytest.approx(right, abs=LAST)
    assert found > printed * 1.1
