"""Closed forms against values known from elsewhere, and against each other in limits."""

import pytest
import sympy

from btqueue.baseband import PACKET_TYPES, SLOT_S, segment
from btqueue.queueing import closed_forms as queueing
from btqueue.study.closed_forms import closed_forms as catalogue

FORMS = catalogue()


@pytest.mark.parametrize(
    ("peripherals", "packets", "message", "slots"),
    [
        (
            2,
            ["DH5", "DH3"],
            1504,
            52,
        ),  # the thesis: 4 DH5 + 1 DH3 and an acknowledgement of 1 DH3, on both hops
        (3, ["DH3"], 4 * 183, 30),
    ],
)
def test_capacity_of_a_ring(peripherals, packets, message, slots):
    types = [PACKET_TYPES[name] for name in packets]
    data, ack = (sum(piece.packet.slots for piece in segment(size, types, "osu")) for size in (message, 44))
    values = {"N": peripherals, "D": data, "A": ack, "T_s": SLOT_S}
    capacity = FORMS["capacity of a ring, each flow"].function(*values)(*values.values())
    assert capacity == pytest.approx(1 / (peripherals * slots * SLOT_S), rel=1e-14)


def test_limits_of_the_formulas():
    single = FORMS["wait, M/G/1"].expression
    form = FORMS["wait, one-limited vacations"]
    names = {name: form.symbol(name) for name in form.symbols}
    # without arrivals one waits for the residual vacation
    alone = sympy.limit(form.expression.subs(names["k"], 1), names["lambda"], 0)
    assert sympy.simplify(alone - names["v_2"] / (2 * names["v"])) == 0
    # with vacations of length zero what is left is M/G/1
    short = form.expression.subs({names["v_2"]: names["v"] ** 2})
    assert sympy.simplify(sympy.limit(short, names["v"], 0) - single) == 0
    loss = FORMS["loss, M/M/1/K"]
    rho, room = loss.symbol("rho"), loss.symbol("K")
    assert sympy.limit(loss.expression.subs(room, 4), rho, 1) == sympy.Rational(1, 5)


def test_cycles_of_one_queue_are_queues_with_vacations():
    arguments = (0.05, 6, 40, 15, 235)
    for cyclic, vacation in (
        (queueing.exhaustive_cyclic_wait, queueing.exhaustive_wait),
        (queueing.gated_cyclic_wait, queueing.gated_wait),
    ):
        assert cyclic(0.05, 1, *arguments[1:]) == pytest.approx(vacation(*arguments), rel=1e-14)
    one = queueing.one_limited_cyclic_wait(0.03, 1, 6, 40, 15, 235)
    assert one == pytest.approx(queueing.one_limited_wait(0.03, 6, 40, 15, 235), rel=1e-13)
