"""The points of a study: what ranges and lists of them mean, and how they are refused."""

import math

import numpy as np
import pytest

from btqueue.scenario import ScenarioError
from btqueue.study.points import Points, grid, split

LIMIT, LOAD, BER = "polling.limit", "traffic.load_kbps", "radio.ber"
DIGITS = "9" * 60_000


def values(text: str) -> list:
    (found,) = grid([text]).columns
    return list(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{LIMIT}=1..4", [1, 2, 3, 4]),
        (f"{LIMIT}=1..9:3", [1, 4, 7]),
        (f"{LIMIT}=5,10,20", [5, 10, 20]),
        (f"{LIMIT}=7", [7]),
        (f"{LIMIT}=lin(1,9,3)", [1, 5, 9]),
        (f"{LIMIT}=log(1,64,4)", [1, 4, 16, 64]),
        (f"{LIMIT}=log(1,4,9)", [1, 2, 3, 4]),  # whole numbers, each once
        (f"{LOAD}=100..102", [100.0, 101.0, 102.0]),
        (f"{LOAD}=0.1..0.5:0.1", [0.1, 0.2, 0.3, 0.4, 0.5]),
        (f"{LOAD}=lin(0.5,1.5,3)", [0.5, 1.0, 1.5]),
        ("le.interval_s=0.0075..0.01", [0.0075, 0.00875, 0.01]),
        (f"{BER}=1e-6,1e-5", [1e-6, 1e-5]),
        ("polling.discipline=gated, exhaustive", ["gated", "exhaustive"]),
        ("link.packets=[DH5],[DH1, DH3]", [["DH5"], ["DH1", "DH3"]]),
        ("link.packets=DH5, [DH1, DH3]", [["DH5"], ["DH1", "DH3"]]),
        ("link.packets=[DH1,DH3]", [["DH1", "DH3"]]),
        ('link.packets=[["DH5"], ["DH1", "DH3"]]', [["DH5"], ["DH1", "DH3"]]),
        ("link.packets=[[DH5],[DH1,DH3]]", [["DH5"], ["DH1", "DH3"]]),
        ("link.adaptation_thresholds=1e-4,[1e-4,1e-3]", [[1e-4], [1e-4, 1e-3]]),
        ("network.flows=ring,pairs", ["ring", "pairs"]),
        ("link.arq=none,unlimited,3", ["none", "unlimited", 3]),
        ("transport.delayed_ack=true,false", [True, False]),
        ("traffic.application_timeout_s=none,1.5", [None, 1.5]),
    ],
)
def test_values_are_read(text, expected):
    assert [(type(one), one) for one in values(text)] == [(type(one), one) for one in expected]


def test_commas_within_nested_brackets_do_not_separate_values():
    inner = '{from="a",to="b",load_schedule=[{at_s=0,load_kbps=10}]}'
    assert split(f'[{inner},{{from="b",to="a"}}],[{inner}],"x,[y"') == [
        f'[{inner},{{from="b",to="a"}}]',
        f"[{inner}]",
        '"x,[y"',
    ]


def test_logarithms_are_evenly_spaced():
    found = values(f"{BER}=log(1e-6,1e-3,4)")
    assert found == pytest.approx([1e-6, 1e-5, 1e-4, 1e-3], rel=1e-12)
    assert (found[0], found[-1]) == (1e-6, 1e-3)


@pytest.mark.parametrize("collection", [range(1, 4), [1, 2, 3], (1, 2, 3), np.arange(1, 4), "1..3"])
def test_collections_of_python_mean_the_same(collection):
    assert grid({LIMIT: collection}) == Points((LIMIT,), ((1, 2, 3),))


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (["polling.limt=1..3"], ["did you mean 'polling.limit'"]),
        (["polling=1"], ["is a table"]),
        (["title=a"], ["no key of a table"]),
        ([LIMIT], ["KEY=VALUES"]),
        ([f"{LIMIT}="], ["no values", "1..25"]),
        ([f"{LIMIT}=0..3"], ["[polling] limit = 0", "at least 1"]),
        ([f"{LIMIT}=1.5,2"], ["[polling] limit = 1.5", "whole number"]),
        ([f"{LIMIT}=3..1"], ["the smaller one"]),
        ([f"{LIMIT}=1..9:0.5"], ["whole steps"]),
        ([f"{LIMIT}=1..9:-1"], ["above 0"]),
        ([f"{LIMIT}=lin(1,2,x)"], ['"x" is no number']),
        ([f"{LIMIT}=lin(1,9)"], ["lin(1,9,11)"]),
        ([f"{BER}=0,log(1e-5,1e-2,7)"], ["stand alone"]),
        ([f"{LOAD}=0.1..0.5"], ["does not say how many", "lin(0.1,0.5,11)"]),
        ([f"{LOAD}=lin(1,2,1)"], ["two values or more"]),
        ([f"{BER}=log(0,0.1,5)"], ["starts above 0"]),
        ([f"{LOAD}=1..99999999"], ["[traffic] load_kbps = 99999999"]),
        ([f"{LOAD}=1..9999999"], ["too many"]),
        ([f"{LOAD}=1..9:1e-320"], ["more than 1,000,000 values"]),
        ([f"{LIMIT}=1..1e999"], ['"1e999" is too large a number']),
        ([f"{LOAD}=lin({DIGITS},1,3)"], ["is too large a number"]),
        ([f"{LOAD}={DIGITS}"], ["[traffic] load_kbps", "at most 1e+07"]),
        (["run.jitter_s=1ms,5ms"], ['jitter_s = "1ms"', "without a unit, in s: 0.001"]),
        (["run.jitter_s=lin(0,5 ms,3)"], ['"5 ms" is no number', "without a unit, in s: 0.005"]),
        (["network.outside_links[1].loss=0,2"], ["outside_links[1].loss = 2", "at most 1"]),
        ([f"network.flows[{DIGITS}].load_kbps=1,2"], ["unknown key", "'network.flows[1].load_kbps'"]),
        ([f"{LIMIT}=2,2"], ["2 is given twice"]),
        ([f"{LIMIT}=1", f"{LIMIT}=2"], ["given twice"]),
        (["link.packets=[DH5,DH3"], ["[DH5,DH3", "write A,[A,B]"]),
        (["link.packets=1..4"], ['"1..4" cannot be read', "write A,[A,B]"]),
        (["link.packets=DH5,5"], ["[link] packets[1] = 5", "a text"]),
        (["link.packets=DH5,[DH5]"], ['["DH5"] is given twice']),
        ({"link.packets": ["DH5"]}, ["must be a list"]),
        (["polling.discipline=exhaustve"], ['did you mean "exhaustive"']),
        ({LIMIT: 5}, ["no collection"]),
        ({LIMIT: [True]}, ["whole number"]),
        ({LIMIT: [math.nan]}, ["limit"]),
        ({}, ["nothing to go over"]),
        ([f"{LIMIT}=1..10000", "run.seed=1..10000"], ["100,000,000 points"]),
    ],
)
def test_what_cannot_be_gone_over_is_refused(over, words):
    with pytest.raises(ScenarioError) as refused:
        grid(over)
    for word in words:
        assert word in str(refused.value)


def test_points_outside_are_errors():
    for number in (-1, 3):
        with pytest.raises(IndexError):
            grid({LIMIT: [1, 2, 3]})[number]
