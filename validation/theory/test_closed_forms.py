"""Every closed form of the catalogue against its numerical twin, and against values known from elsewhere."""

import doctest
import importlib
import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import mpmath
import numpy as np
import pytest
import sympy
from scipy import integrate

from btqueue.baseband import PACKET_TYPES, SLOT_S, fec, voice
from btqueue.channel import TwoStateChannel, best_packet_type, closed_forms, error_rates, packet_adaptation
from btqueue.channel.packet_trains import train_success
from btqueue.network.answers import jain_index
from btqueue.network.ring_piconet.ring import Piece, Ring
from btqueue.queueing import closed_forms as queueing
from btqueue.queueing import traffic_forms as traffic
from btqueue.queueing.chains import birth_death
from btqueue.queueing.laws import lattice
from btqueue.queueing.links import arq
from btqueue.queueing.polling.conservation import conservation_law
from btqueue.queueing.polling.model import polling_model
from btqueue.queueing.polling.polling import solve_polling
from btqueue.queueing.single import n_policy
from btqueue.queueing.single.priority_queue import priority_queue
from btqueue.queueing.single.single_queue import single_queue
from btqueue.queueing.traffic import map_sources
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
from btqueue.queueing.vacations import vacations
from btqueue.study.closed_forms import closed_forms as catalogue
from btqueue.study.closed_forms import table
from btqueue.transport.closed_forms import pftk_rate, pftk_short_rate, square_root_rate

FORMS = catalogue()
SIX = lattice.point(6)
FOUR_OR_EIGHT = lattice.from_points({4: 0.5, 8: 0.5})
TEN_TO_TWENTY = lattice.uniform(10, 20)
THREE_OR_FIVE = {"l": 4.6, "l_2": 21.8}
SERVICE = {"b": 6.0, "b_2": 40.0}
VACATION = {"v": 15.0, "v_2": 235.0}
CONTINUOUS = {"length": 4, "horizon": 4, "slotted": False}


def polling_wait(rate, queues, discipline, service=(2.0, 5.0), switch=(1.0, 2.0)):
    model = polling_model(
        arrival_rate=np.full(queues, rate),
        service_mean=service[0],
        service_second=service[1],
        switch_mean=switch[0],
        switch_second=switch[1],
        discipline=discipline,
        limit=1 if discipline == "limited" else None,
    )
    return solve_polling(model)


def conserved(discipline):
    model = polling_model(
        arrival_rate=np.array([0.05, 0.08]),
        service_mean=np.array([2.0, 3.0]),
        service_second=np.array([4.0, 18.0]),
        switch_mean=np.array([1.0, 2.0]),
        switch_second=np.array([2.0, 8.0]),
        discipline=discipline,
        limit=1 if discipline == "limited" else None,
    )
    return conservation_law(model, np.zeros(2)).total


def priorities(which):
    streams = [PoissonBatches(0.05), PoissonBatches(0.06)]
    solution = priority_queue(arrivals=streams, services=[SIX, FOUR_OR_EIGHT], horizon=4, slotted=False)
    return solution.mean_wait[which]


def saturated():
    solution = vacations.limited_service_queue(
        arrivals=PoissonBatches(10.0), service=SIX, vacations=lattice.point(2), capacity=20, limit=3
    )
    return solution.throughput


def vacation_wait(solve, **limit):
    """Batches of 2 or 4; capacity 200 leaves nothing to be lost."""
    solution = solve(
        arrivals=PoissonBatches(0.01, [0.0, 0.0, 0.5, 0.0, 0.5]),
        service=FOUR_OR_EIGHT,
        vacations=TEN_TO_TWENTY,
        capacity=200,
        **limit,
    )
    assert solution.packet_loss < 1e-10
    return solution.mean_wait


def on_off(start, end):
    source = map_sources.interrupted_bernoulli(0.1, 50.0)
    return np.asarray(source.blocks).sum(axis=0)[start, end]


def answer_moment(power, tick):
    """Moments of min(timer, exponential) from the survival function; the timer is uniform (tick) or fixed."""
    rate, timer = 2.0, 0.5
    alone = (lambda t: 1 - t / timer) if tick else (lambda t: 1.0)
    return integrate.quad(lambda t: power * t ** (power - 1) * math.exp(-rate * t) * alone(t), 0, timer)[0]


def answers_alone(tick):
    rate, timer = 2.0, 0.5
    if not tick:
        return 1 - integrate.quad(lambda t: rate * math.exp(-rate * t), 0, timer)[0]
    return integrate.quad(lambda t: math.exp(-rate * t) / timer, 0, timer)[0]


TWO_STATES = TwoStateChannel(ber_good=7e-6, ber_bad=1e-4, good_s=0.4375, bad_s=0.0558)
CHANNEL = {"b_G": 7e-6, "b_B": 1e-4, "rho_G": 0.4375, "rho_B": 0.0558}
SEGMENT = [PACKET_TYPES["DH5"]] * 4 + [PACKET_TYPES["DH3"]]
ACK = [PACKET_TYPES["DH3"]]
LINK = {"h": 0.9, "s": 0.3, "r": 0.8}
STATIONARY = np.ones(1)


@dataclass(frozen=True)
class Twin:
    values: dict
    number: Callable[[], Any]  # computes the value in another way
    rel: float = 1e-9


def independent(packets, hops):
    return train_success(TWO_STATES, packets, hops=hops, observation="published")


WALKS = {"w": 1.0, "w_2": 2.0, "b": 2.0, "b_2": 5.0, "N": 4, "lambda": 0.05}
ROUND_ROBIN = {"N": 2, "lambda": 0.04, **THREE_OR_FIVE}
BATCHES = {"lambda": 0.03, "k": 10 / 3, **SERVICE}
TWO_QUEUES = {
    "lambda_1": 0.05,
    "lambda_2": 0.08,
    "b_11": 2.0,
    "b_12": 3.0,
    "b_21": 4.0,
    "b_22": 18.0,
    "s": 3.0,
    "s_2": 3.0**2 + 1.0 + 4.0,
}
PRIORITIES = {"lambda_1": 0.05, "lambda_2": 0.06, "b_11": 6.0, "b_12": 6.0, "b_21": 36.0, "b_22": 40.0}
ANSWERS = {"Lambda": 2.0, "T": 0.5}
TCP = {"p": 0.05, "b": 1.0, "RTT": 0.1, "T_0": 1.0, "W_m": 8.0}
TIGHT = 1e-12

TWINS = {
    "wait, M/G/1": Twin(
        {"lambda": 0.1, "k": 10 / 3, **SERVICE},
        lambda: (
            single_queue(
                arrivals=PoissonBatches(0.1 / 3, [0, 0, 0.5, 0, 0.5]), service=FOUR_OR_EIGHT, **CONTINUOUS
            ).mean_wait
        ),
        TIGHT,
    ),
    "wait, Geo/G/1": Twin(
        {"lambda": 0.1, **SERVICE},
        # on slots a packet joins at the end of its slot, so that its whole wait counts
        lambda: (
            single_queue(arrivals=BernoulliBatches(0.1), service=FOUR_OR_EIGHT, length=4, horizon=4).mean_wait
        ),
        TIGHT,
    ),
    "wait, exhaustive vacations": Twin(
        {**BATCHES, **VACATION}, lambda: vacation_wait(vacations.exhaustive_service_queue)
    ),
    "wait, gated vacations": Twin(
        {**BATCHES, **VACATION}, lambda: vacation_wait(vacations.gated_service_queue)
    ),
    "wait, one-limited vacations": Twin(
        {**BATCHES, **VACATION}, lambda: vacation_wait(vacations.limited_service_queue, limit=1)
    ),
    "wait, N-policy": Twin(
        {"lambda": 0.1, "N": 5, **SERVICE},
        lambda: (
            n_policy.n_policy_queue(
                arrivals=PoissonBatches(0.1), service=FOUR_OR_EIGHT, threshold=5, length=4, slotted=False
            ).mean_wait
        ),
        TIGHT,
    ),
    "wait, exhaustive cycle": Twin(WALKS, lambda: polling_wait(0.05, 4, "exhaustive").mean_wait[0]),
    "wait, gated cycle": Twin(WALKS, lambda: polling_wait(0.05, 4, "gated").mean_wait[0]),
    "wait, one-limited cycle": Twin(WALKS, lambda: polling_wait(0.05, 4, "limited").mean_wait[0]),
    "wait, alternating round robin": Twin(
        ROUND_ROBIN, lambda: polling_wait(0.04, 4, "limited", (3.6, 13.6), (1.0, 1.0)).mean_wait[0]
    ),
    "cycle, alternating round robin": Twin(
        ROUND_ROBIN,
        lambda: polling_wait(0.04, 4, "limited", (3.6, 13.6), (1.0, 1.0)).mean_served[0] / 0.04,
    ),
    "cycle": Twin({"rho": 0.4, "s": 4.0}, lambda: polling_wait(0.05, 4, "exhaustive").mean_served[0] / 0.05),
    "wait, first of two priorities": Twin(PRIORITIES, lambda: priorities(0), TIGHT),
    "wait, second of two priorities": Twin(PRIORITIES, lambda: priorities(1), TIGHT),
    "conservation law, exhaustive": Twin(TWO_QUEUES, lambda: conserved("exhaustive"), TIGHT),
    "conservation law, gated": Twin(TWO_QUEUES, lambda: conserved("gated"), TIGHT),
    "conservation law, one-limited": Twin(TWO_QUEUES, lambda: conserved("limited"), TIGHT),
    "loss, M/M/1/K": Twin(
        {"rho": 0.9, "K": 7},
        lambda: birth_death.mmck_queue(arrival_rate=0.9, service_rate=1.0, capacity=7).blocking,
        TIGHT,
    ),
    "throughput, saturated cycle": Twin({"M": 3, "b": 6.0, "w": 2.0}, saturated),
    # 1,460 bytes in five packets at 1,539 bytes of tokens: the rate at which the bucket's load is one
    "capacity, token bucket": Twin(
        {"tau": 31250.0, "a": 1460.0, "g": 1539.0},
        lambda: 1460 * 31250.0 / 307.8 / lattice.mean(lattice.point(5)),
        TIGHT,
    ),
    "interrupted source, stop": Twin({"r": 0.1, "c": 50.0}, lambda: on_off(0, 1), TIGHT),
    "interrupted source, go": Twin({"r": 0.1, "c": 50.0}, lambda: on_off(1, 0), TIGHT),
    "interrupted source, rate": Twin({"p": on_off(0, 1), "q": on_off(1, 0)}, lambda: 0.1, TIGHT),
    "interrupted source, variation": Twin({"p": on_off(0, 1), "q": on_off(1, 0)}, lambda: 50.0, TIGHT),
    "delay of an answer, tick": Twin(ANSWERS, lambda: answer_moment(1, True)),
    "mean square delay of an answer, tick": Twin(ANSWERS, lambda: answer_moment(2, True)),
    "answers alone, tick": Twin(ANSWERS, lambda: answers_alone(True)),
    "delay of an answer, timer": Twin(ANSWERS, lambda: answer_moment(1, False)),
    "mean square delay of an answer, timer": Twin(ANSWERS, lambda: answer_moment(2, False)),
    "answers alone, timer": Twin(ANSWERS, lambda: answers_alone(False)),
    "fairness": Twin(
        {"x_1": 4.0, "x_2": 2.0, "x_3": 1.0}, lambda: jain_index(np.array([4.0, 2.0, 1.0])), TIGHT
    ),
    "rate, one-slot answers": Twin(
        {"u": 339, "n": 5, "T_s": SLOT_S}, lambda: 1e3 * PACKET_TYPES["DH5"].asymmetric_kbps, TIGHT
    ),
    "rate, both ways": Twin(
        {"u": 339, "n": 5, "T_s": SLOT_S}, lambda: 1e3 * PACKET_TYPES["DH5"].symmetric_kbps, TIGHT
    ),
    "success of a coded block": Twin({"b": 0.01}, lambda: fec.block_success_rate(0.01), TIGHT),
    "rate beside voice": Twin(
        {"u": 27, "n": 1, "m": 1, "g": 4, "P": 6, "T_s": SLOT_S},
        lambda: (
            1e3
            * voice.data_capacity_kbps(
                PACKET_TYPES["DH1"], PACKET_TYPES["DH1"], voice.VoiceLinks(packet="HV3", links=1)
            )[0]
        ),
        TIGHT,
    ),
    "mean packet error rate, DH5 on two states": Twin(
        CHANNEL, lambda: 1 - independent([PACKET_TYPES["DH5"]], 1), TIGHT
    ),
    "success of a segment and its acknowledgement, two hops": Twin(
        CHANNEL, lambda: independent(SEGMENT + ACK, 2), TIGHT
    ),
    "attempts": Twin(LINK, lambda: arq.attempts(arq_link(), STATIONARY).mean, TIGHT),
    "delivered within R attempts": Twin(
        {"h": 0.9, "s": 0.3, "R": 6}, lambda: arq.attempts(arq_link(), STATIONARY, 6).delivered, TIGHT
    ),
    "send rate, square-root law": Twin(
        {"p": 0.05, "b": 1.0, "RTT": 0.1}, lambda: square_root_rate(0.05, 0.1), TIGHT
    ),
    "send rate, PFTK short": Twin(TCP, lambda: pftk_short_rate(0.05, 0.1, window=8.0, rto=1.0), TIGHT),
    "send rate, PFTK": Twin(TCP, lambda: pftk_rate(0.05, 0.1, window=8.0, rto=1.0), TIGHT),
}


def arq_link():
    return arq.memoryless_link(detected=0.9, intact=0.3, acknowledged=0.8, slots=5, reply=1)


def add_packet_types():
    for name, packet in PACKET_TYPES.items():
        TWINS[f"packet error rate, {name} payload"] = Twin(
            {"b": 1e-3}, lambda packet=packet: error_rates.payload_error_rate(packet, 1e-3), TIGHT
        )
        TWINS[f"packet error rate, {name} on air"] = Twin(
            {"b": 1e-3}, lambda packet=packet: error_rates.on_air_error_rate(packet, 1e-3), 1e-11
        )
        TWINS[f"goodput, {name}"] = Twin(
            {"b": 1e-3}, lambda packet=packet: best_packet_type.arq_goodput_kbps(packet, 1e-3), 1e-11
        )


add_packet_types()


def given(name):
    """The values of those symbols that the expression has."""
    return {symbol: value for symbol, value in TWINS[name].values.items() if symbol in FORMS[name].symbols}


def test_every_entry_has_a_numerical_twin_here():
    # the ring and the thresholds have tests of their own
    own = {"capacity of a ring, each flow"} | {name for name in FORMS if name.startswith("threshold")}
    assert set(TWINS) | own == set(FORMS)


@pytest.mark.parametrize("name", TWINS)
def test_expression_equals_its_twin(name):
    twin = TWINS[name]
    values = given(name)
    value = FORMS[name].function(*values)(*values.values())
    assert float(value) == pytest.approx(float(twin.number()), rel=twin.rel)


@pytest.mark.parametrize("name", TWINS)
def test_derivatives_against_differences(name):
    # in 40 digits a difference quotient of step 1e-12 has an error of about 1e-12 of the curvature
    form, values = FORMS[name], given(name)
    place = {symbol: mpmath.mpf(value) for symbol, value in values.items()}
    function = form.function(*values, modules="mpmath")
    counts = ("K", "R", "M", "N", "n", "m", "g", "u", "P")
    with mpmath.workdps(40):
        for symbol in [symbol for symbol in values if symbol not in counts][:3]:
            step = place[symbol] * mpmath.mpf("1e-12")
            high, low = (
                function(*{**place, symbol: place[symbol] + sign * step}.values()) for sign in (1, -1)
            )
            slope = sympy.lambdify([form.symbol(n) for n in values], form.derivative(symbol), "mpmath")
            exact = slope(*place.values())
            assert float(exact) == pytest.approx(float((high - low) / (2 * step)), rel=1e-9, abs=1e-30)


@pytest.mark.parametrize("entry", FORMS.values(), ids=FORMS.keys())
def test_entries_are_documented(entry):
    assert entry.latex()
    assert all(unit and meaning for unit, meaning in entry.symbols.values())
    if entry.twin.startswith("btqueue."):
        module, *attributes = entry.twin.split(".")
        found = importlib.import_module(module)
        for name in attributes:
            try:
                found = getattr(found, name)
            except AttributeError:
                found = importlib.import_module(f"{found.__name__}.{name}")
        assert callable(found) or isinstance(found, property)


def test_symbols_and_functions_are_checked():
    form = FORMS["wait, M/G/1"]
    with pytest.raises(ValueError, match="no symbol 'mu', only b, b_2, k, lambda"):
        form.derivative("mu")
    with pytest.raises(ValueError, match="needs a place for b_2, k"):
        form.function("lambda", "b")


def test_a_form_runs_in_jax_and_has_its_gradient_there():
    form = FORMS["wait, one-limited vacations"]
    values = {**BATCHES, **VACATION}
    function = form.function(*values, modules="jax")
    gradient = jax.grad(function, argnums=tuple(range(len(values))))(*map(float, values.values()))
    for name, slope in zip(values, gradient, strict=True):
        exact = sympy.lambdify([form.symbol(n) for n in values], form.derivative(name))(*values.values())
        assert float(slope) == pytest.approx(float(exact), rel=1e-5)  # single precision


def test_capacity_of_the_ring_of_the_thesis():
    # a segment of 4 DH5 + 1 DH3 and an acknowledgement of 1 DH3: 52 slots on both hops
    values = {"N": 2, "D": 23, "A": 3, "T_s": SLOT_S}
    capacity = FORMS["capacity of a ring, each flow"].function(*values)(*values.values())
    assert capacity == pytest.approx(1 / (2 * 52 * 625e-6), rel=1e-14)


@pytest.mark.parametrize("peripherals", [1, 3])
def test_capacity_of_a_ring_with_one_type_of_packet(peripherals):
    piece = Piece(PACKET_TYPES["DH3"], 183)
    ring = Ring(
        peripherals=peripherals,
        limit=5,
        data=(piece,) * 4,
        ack=(piece,),
        buffer=1,
        baseband=1,
        bucket_bytes=1,
        token_rate=1.0,
        whole_segments=False,
        jitter_s=0.0,
    )
    values = {"N": peripherals, "D": 12, "A": 3, "T_s": SLOT_S}
    capacity = FORMS["capacity of a ring, each flow"].function(*values)(*values.values())
    assert capacity == pytest.approx(ring.air_capacity, rel=1e-14)


# ----------------------------------------------------------------------------------------- exact values

EXACT = {
    "vacations, exhaustive": (queueing.exhaustive_wait, (0.1, 6, 36, 12, 276), 16.0),
    "vacations, gated": (queueing.gated_wait, (0.1, 6, 36, 12, 276), pytest.approx(34.0, rel=1e-14)),
    "vacations, one-limited": (queueing.one_limited_wait, (0.05, 6, 36, 10, 100), 37.0),
    "vacations, batches of 5": (queueing.exhaustive_wait, (0.06, 6, 36, 12, 276, 5), 31.9375),
    "round robin, 2 stations": (
        queueing.alternating_round_robin_wait,
        (0.6 / 18.4, 2, 4.6, 21.8),
        pytest.approx(7.804348, abs=5e-7),
    ),
    "round robin, 4 stations": (
        queueing.alternating_round_robin_wait,
        (0.02, 4, 4.6, 21.8),
        pytest.approx(20.363636, abs=5e-7),
    ),
    "round robin, 7 stations": (
        queueing.alternating_round_robin_wait,
        (0.6 / 64.4, 7, 4.6, 21.8),
        pytest.approx(20.304348, abs=5e-7),
    ),
    "interrupted source, stop, 1": (
        traffic.interrupted_stop,
        (0.01, 1),
        pytest.approx(0.985025126, abs=5e-10),
    ),
    "interrupted source, go, 1": (traffic.interrupted_go, (0.01, 1), pytest.approx(0.009949749, abs=5e-10)),
    "interrupted source, stop, 2": (
        traffic.interrupted_stop,
        (0.01, 50),
        pytest.approx(0.038442832, abs=5e-10),
    ),
    "interrupted source, go, 2": (traffic.interrupted_go, (0.01, 50), pytest.approx(0.000388311, abs=5e-10)),
    "interrupted source, stop, 3": (
        traffic.interrupted_stop,
        (0.1, 50),
        pytest.approx(0.031827112, abs=5e-10),
    ),
    "interrupted source, go, 3": (traffic.interrupted_go, (0.1, 50), pytest.approx(0.003536346, abs=5e-10)),
    "interrupted source, stop, 4": (
        traffic.interrupted_stop,
        (0.3, 1),
        pytest.approx(0.576470588, abs=5e-10),
    ),
    "interrupted source, go, 4": (traffic.interrupted_go, (0.3, 1), pytest.approx(0.247058824, abs=5e-10)),
    "tick, mean": (traffic.tick_delay, (2, 0.5), pytest.approx(0.183940, abs=5e-7)),
    "tick, mean square": (traffic.tick_delay_second, (2, 0.5), pytest.approx(0.051819, abs=5e-7)),
    "tick, alone": (traffic.tick_alone, (2, 0.5), pytest.approx(0.632121, abs=5e-7)),
    "timer, mean": (traffic.timer_delay, (2, 0.5), pytest.approx(0.316060, abs=5e-7)),
    "timer, mean square": (traffic.timer_delay_second, (2, 0.5), pytest.approx(0.132121, abs=5e-7)),
    "timer, alone": (traffic.timer_alone, (2, 0.5), pytest.approx(0.367879, abs=5e-7)),
    "fast tick, mean": (traffic.tick_delay, (10, 0.2), pytest.approx(0.056767, abs=5e-7)),
    "fast tick, mean square": (traffic.tick_delay_second, (10, 0.2), pytest.approx(0.005413, abs=5e-7)),
    "fast tick, alone": (traffic.tick_alone, (10, 0.2), pytest.approx(0.432332, abs=5e-7)),
    "fast timer, mean": (traffic.timer_delay, (10, 0.2), pytest.approx(0.086466, abs=5e-7)),
    "fast timer, mean square": (traffic.timer_delay_second, (10, 0.2), pytest.approx(0.011880, abs=5e-7)),
    "fast timer, alone": (traffic.timer_alone, (10, 0.2), pytest.approx(0.135335, abs=5e-7)),
    "fairness, unequal": (traffic.fairness, ([4, 2, 1, 1],), pytest.approx(0.727273, abs=5e-7)),
    "fairness, equal": (traffic.fairness, ([3, 3, 3],), 1.0),
    "fairness, one has all": (traffic.fairness, ([1, 0, 0, 0],), 0.25),
    "token bucket of 250 kbit/s": (
        traffic.token_bucket_capacity,
        (250, 11680, 12312),
        pytest.approx(237.2, abs=0.05),
    ),
    "attempts": (arq.expected_attempts, (0.99, 0.83, 0.98), pytest.approx(1.237603, abs=5e-7)),
}


@pytest.mark.parametrize(("form", "arguments", "value"), EXACT.values(), ids=EXACT.keys())
def test_exact_values(form, arguments, value):
    assert form(*arguments) == value


def test_symbolic_attempts_are_those_of_queueing():
    symbols = sympy.symbols("h s r", positive=True)
    assert sympy.simplify(closed_forms.expected_attempts() - arq.expected_attempts(*symbols)) == 0


VOICE = {
    ("DH1", "DH1", 4, 6): (115.20, 115.20),
    ("DM3", "DH1", 4, 6): (258.13, 57.60),
    ("DH3", "DH1", 4, 6): (390.40, 57.60),
    ("DH5", "DH1", 4, 6): (0.0, 0.0),
    ("DH1", "DH1", 2, 6): (57.60, 57.60),
    ("DH1", "DH1", 2, 4): (86.40, 86.40),
    ("DH1", "DH1", 0, 6): (0.0, 0.0),
}


@pytest.mark.parametrize(("case", "rates"), VOICE.items())
def test_rates_beside_voice(case, rates):
    forward, reverse, gap, period = case
    function = FORMS["rate beside voice"].function("u", "n", "m", "g", "P", "T_s")
    first, second = PACKET_TYPES[forward], PACKET_TYPES[reverse]
    one = function(first.payload_bytes, first.slots, second.slots, gap, period, SLOT_S) / 1e3
    other = function(second.payload_bytes, second.slots, first.slots, gap, period, SLOT_S) / 1e3
    assert (one, other) == pytest.approx(rates, abs=5e-3)


# --------------------------------------------------------------------------------------------- thresholds

THRESHOLDS = {
    ("payload", False): {
        "DH5 DM5 DM3 DM1": (0.0001529, 0.0050181, 0.0127017),
        "DH5 DH3 DH1": (0.0001691, 0.0009775),
    },
    ("payload", True): {
        "DH5 DH3 DM5 DM3 DM1": (0.0000847, 0.0002114, 0.0035238, 0.0103872),
        "DH5 DH3 DH1": (0.0000847, 0.0006529),
    },
    ("on-air", False): {
        "DH5 DM5 DM3 DM1": (0.0001512, 0.0050205, 0.0126474),
        "DH5 DH3 DH1": (0.0001691, 0.0009713),
    },
    ("on-air", True): {
        "DH5 DH3 DM5 DM3 DM1": (0.0000847, 0.0002069, 0.0035248, 0.0103401),
        "DH5 DH3 DH1": (0.0000847, 0.0006487),
    },
}


@pytest.mark.parametrize("bits", ["payload", "on-air"])
@pytest.mark.parametrize("same", [False, True])
def test_thresholds_between_packet_types(bits, same):
    for ladder, values in THRESHOLDS[bits, same].items():
        types = [PACKET_TYPES[name] for name in ladder.split()]
        for (fast, robust), value in zip(itertools.pairwise(types), values, strict=True):
            equation = closed_forms.threshold_equation(fast, robust, bits=bits, same_type_reply=same)
            assert closed_forms.threshold(equation) == pytest.approx(value, abs=5e-8)


@pytest.mark.parametrize(
    ("fast", "robust", "value"),
    [("DH5", "DM5", 0.000152937), ("DM5", "DM3", 0.005018106), ("DM3", "DM1", 0.012701721)],
)
def test_thresholds_to_nine_decimals_and_against_the_numerical_root(fast, robust, value):
    first, second = PACKET_TYPES[fast], PACKET_TYPES[robust]
    root = closed_forms.threshold(FORMS[f"threshold {fast} to {robust}, zero of"].expression)
    assert root == pytest.approx(value, abs=5e-10)
    assert root == pytest.approx(packet_adaptation.goodput_crossing(first, second), rel=1e-11)


# Printed values of the adaptation paper: rates of its Table 1, ceil(s / 15) blocks, DM5 with 227 bytes.
@pytest.mark.parametrize(
    ("fast", "robust", "value"),
    [
        ((723.2, 2712, None), (477.8, None, 122), 0.000152935),
        ((477.8, None, 122), (387.2, None, 65), 0.006079471),
        ((387.2, None, 65), (108.8, None, 10), 0.015781307),
    ],
)
def test_thresholds_as_printed(fast, robust, value):
    def goodput(rate, bits, blocks):
        lost = (
            closed_forms.coded_error_rate(blocks) if bits is None else closed_forms.uncoded_error_rate(bits)
        )
        return rate * (1 - lost)

    assert closed_forms.threshold(goodput(*fast) - goodput(*robust)) == pytest.approx(value, abs=5e-10)


def test_types_that_do_not_change_places_have_no_threshold():
    equation = closed_forms.threshold_equation(PACKET_TYPES["DM3"], PACKET_TYPES["DH1"], bits="payload")
    with pytest.raises(ValueError, match="do not change places"):
        closed_forms.threshold(equation, high=1e-3)


@pytest.mark.parametrize("bits", ["payload", "on-air"])
def test_implicit_derivative_of_a_threshold(bits):
    rate = sympy.Symbol("rate", positive=True)
    b = sympy.Symbol("b", nonnegative=True)
    types = PACKET_TYPES["DH5"], PACKET_TYPES["DM5"]
    equation = closed_forms.threshold_equation(*types, bits=bits, rates_kbps=(rate, 477.8))
    at = 723.2

    def root(value):
        known = closed_forms.threshold_equation(*types, bits=bits, rates_kbps=(value, 477.8))
        return closed_forms.threshold(known)

    slope = sympy.lambdify((rate, b), closed_forms.threshold_derivative(equation, rate))(at, root(at))
    # central difference: error (h/R)^2 of the third derivative, and 1e-16 / (2 h) from the roots
    assert slope == pytest.approx((root(at + 0.1) - root(at - 0.1)) / 0.2, rel=1e-6)


# ---------------------------------------------------------------------------------------------- limits


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


def test_priorities_conserve_the_mean_work_that_waits():
    # with equal services the mean over the classes is that of first come, first served (Kleinrock)
    waits = queueing.priority_waits([0.03, 0.05, 0.02], [6, 6, 6], [40, 40, 40])
    mean = np.dot([0.03, 0.05, 0.02], waits) / 0.1
    assert mean == pytest.approx(queueing.single_wait(0.1, 6, 40), rel=1e-14)
    assert waits == sorted(waits)


def test_cycles_of_one_queue_are_queues_with_vacations():
    arguments = (0.05, 6, 40, 15, 235)
    for cyclic, vacation in (
        (queueing.exhaustive_cyclic_wait, queueing.exhaustive_wait),
        (queueing.gated_cyclic_wait, queueing.gated_wait),
    ):
        assert cyclic(0.05, 1, *arguments[1:]) == pytest.approx(vacation(*arguments), rel=1e-14)
    one = queueing.one_limited_cyclic_wait(0.03, 1, 6, 40, 15, 235)
    assert one == pytest.approx(queueing.one_limited_wait(0.03, 6, 40, 15, 235), rel=1e-13)


def test_an_unknown_discipline_is_refused():
    with pytest.raises(ValueError, match="discipline"):
        queueing.weighted_waits([0.1], [2], [4], 1, 1, "lifo")


def test_traffic_forms_take_numbers_arrays_and_symbols():
    rates = np.array([1.0, 2.0])
    assert traffic.timer_delay(rates, 0.5) == pytest.approx([traffic.timer_delay(r, 0.5) for r in rates])
    assert queueing.formula(traffic.timer_alone).free_symbols == {
        sympy.Symbol("rate", positive=True),
        sympy.Symbol("timer", positive=True),
    }


def test_the_documentation_shows_the_catalogue(pytestconfig):
    page = (pytestconfig.rootpath / "docs/explanation/closed-forms.md").read_text("utf-8")
    assert table() in page


def test_the_examples_of_the_documentation(pytestconfig):
    page = pytestconfig.rootpath / "docs/explanation/closed-forms.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
    assert doctest.testmod(importlib.import_module("btqueue.study.closed_forms")).failed == 0


def test_sympy_is_imported_only_when_a_formula_is_asked_for():
    program = (
        "import sys, btqueue.study.closed_forms as c; c.closed_forms();"
        "from btqueue.queueing import traffic_forms; traffic_forms.timer_alone(1.0, 1.0);"
        "sys.exit('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
