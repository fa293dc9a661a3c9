"""Scenarios: defaults, reading, changing, writing, the library of models and what the engines can run."""

import json
import pickle
import subprocess
import sys
import tomllib
from functools import partial

import numpy as np
import pytest
import xarray as xr
from any_scenario import scenarios
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from thesis import over_wires, thesis

from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError, list_models, load
from btqueue.scenario.fields import declared
from btqueue.scenario.metrics import Computed, Results, Variable
from btqueue.scenario.topology import flows_of
from btqueue.simulator.scope import require_simulated

MODELS = list_models()


def test_a_bare_network_table_is_bluetooth_as_people_have_it(tmp_path):
    file = tmp_path / "bare.toml"
    file.write_text("[network]\n")
    s = load(file)
    assert s == Scenario()
    assert (s.link.arq, s.link.packets) == ("unlimited", ("DH5", "DH3", "DH1"))
    assert (s.flow_control.enabled, s.flow_control.places) == (False, (np.inf, np.inf))
    t = s.transport
    assert (t.windows, t.receive_window_segments * t.mss_bytes <= 65_535) == ("bytes", True)
    assert (t.initial_window_segments, t.delayed_ack, t.initial_rto_s, t.min_rto_s) == (10, True, 1, 1)


def test_the_thesis_piconet_has_the_settings_of_the_thesis():
    s = load("venugopal-2006/piconet")
    assert s == thesis(title=s.title, transport={"windows": "segments"})
    t = s.transport
    assert (t.initial_ssthresh_segments, t.initial_rto_s, t.min_rto_s, t.max_rto_s) == (64, 3, 1, 64)


def is_read_as_written(scenario):
    for resolved in (True, False):
        again = Scenario.from_dict(tomllib.loads(scenario.to_toml(resolved=resolved)))
        assert (again, hash(again)) == (scenario, hash(scenario))
        assert again.to_dict() == scenario.to_dict() and again.to_toml() == scenario.to_toml()
        for one, other in zip(flows_of(scenario.network), flows_of(again.network), strict=True):
            assert scenario.of_flow(one) == again.of_flow(other)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_loads_runs_today_and_survives_writing(name):
    s = load(name)
    require_simulated(s)
    assert s.title
    assert Scenario.from_dict(json.loads(json.dumps(s.to_dict()))) == s
    is_read_as_written(s)


def test_a_scenario_is_frozen_hashable_and_picklable():
    s = Scenario()
    with pytest.raises(ValidationError, match="frozen"):
        s.polling.limit = 6
    assert hash(s) == hash(Scenario())
    assert pickle.loads(pickle.dumps(s)) == s


LINKS = {
    "network": over_wires(
        {"name": "near", "from": "a", "to": "b"},
        {"name": "far", "from": "b", "to": "d", "kind": "other", "rate_kbps": 100, "delay_s": 0.05},
        flows=[{"from": "a", "to": "d"}],
    )
}


def test_a_key_of_an_entry_of_a_list_is_set_and_read_by_the_number_of_the_entry():
    before = Scenario.from_dict(LINKS)
    after = before.with_sets(["network.outside_links[2].rate_kbps=200", "network.flows[1].from=b"])
    assert after.value_of("network.outside_links[2].rate_kbps") == 200
    assert after.value_of("network.flows[1].from") == "b"
    assert after.value_of("network.flows[1].group") is None
    assert after.value_of("network.outside_links[2].delay_s") == 0.05, "other keys of the entry stay"
    assert before == Scenario.from_dict(LINKS), "the original stays"
    assert after.changed({"network.outside_links[2].rate_kbps": 100, "network.flows[1].from": "a"}) == before


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("network.outside_links[3].rate_kbps", r"network.outside_links has \[1\] to \[2\]"),
        ("network.outside_links[0].rate_kbps", r"has \[1\] to \[2\]"),
        ("network.outside_links.2.rate_kbps", r"did you mean 'network.outside_links\[2\].rate_kbps'"),
        ("outside_links[2].rate_kbps", r"did you mean 'network.outside_links\[2\].rate_kbps'"),
        ("network.outside_links[2].rat_kbps", r"did you mean 'network.outside_links\[2\].rate_kbps'"),
        ("network.outside_links[].rate_kbps", r"outside_links\[1\].rate_kbps'"),
        (f"network.outside_links[{'9' * 5000}].rate_kbps", r"outside_links\[1\].rate_kbps'"),
        ("network.outside_links[1.rate_kbps", r"outside_links\[1\].rate_kbps'"),
        ("network.piconet_list[1].peripherals.x", "unknown key"),
        ("polling[1].limit", "did you mean 'polling.limit'"),
        ("network.flows[2].ber", r"did you mean 'radio.links\[1\].ber'"),
        ("network.flows[1].rate_kbps", r"did you mean 'network.flows\[1\].load_kbps'"),
    ],
)
def test_a_wrong_entry_is_refused_with_a_guess(key, said):
    with pytest.raises(ScenarioError, match=said):
        Scenario.from_dict(LINKS).with_sets([f"{key}=3"])
    with pytest.raises(ScenarioError):
        Scenario.from_dict(LINKS).value_of(key)


def test_defaults_follow_the_topology_until_they_are_given():
    scatternet = Scenario().with_(network__topology="scatternet")
    assert (scatternet.network.piconets, scatternet.network.flows) == (2, "pairs")
    assert scatternet.with_(network__topology="piconet") == Scenario()
    downlink = Scenario().with_(network__flows="downlink").with_(network__topology="scatternet")
    assert downlink.network.flows == "downlink"


def test_a_link_has_the_common_radio_but_for_its_own_keys():
    own = [
        {"node": "p1.1", "ber": 1e-3},
        {"node": "p1.2", "direction": "up", "model": "gilbert-elliott", "good_s": 2},
        {"node": "p1.2", "direction": "down", "model": "perfect"},
    ]
    s = Scenario.from_dict({"radio": {"model": "constant", "per": 0.1, "good_s": 7, "links": own}})
    first, second, third = (link.applied_to(s.radio) for link in s.radio.links)
    assert (first.model, first.ber, first.per, first.links) == ("constant", 1e-3, None, ())
    assert (second.model, second.good_s, second.bad_s, second.per) == ("gilbert-elliott", 2, 0.0558, None)
    assert third.model == "perfect"
    is_read_as_written(s)
    rate = {"model": "constant", "ber": 0.1, "links": [{"node": "p1.1", "per": 0}]}
    radio = Scenario.from_dict({"radio": rate}).radio
    assert (radio.links[0].applied_to(radio).ber, radio.ber) == (0, 0.1)


def test_settings_are_read_as_toml_and_texts_need_no_quotes():
    s = Scenario().with_sets(
        [
            "polling.limit=3", "polling.limit=10", "polling.discipline = 1-limited", 'radio.model="constant"',
            "radio.ber=1e-5", "flow_control.enabled=false", "link.packets=[DH5, DM1]", "run.precision=0.02",
            "title=a=b",
        ],
    )  # fmt: skip
    assert (s.polling.limit, s.polling.discipline) == (10, "1-limited"), "later settings win"
    assert (s.radio.model, s.radio.ber) == ("constant", 1e-5)
    assert (s.flow_control.enabled, s.link.packets) == (False, ("DH5", "DM1"))
    assert (s.run.precision, s.title) == (0.02, "a=b")
    assert s.with_sets(["run.precision=none"]).run.precision is None
    assert s.with_sets(["voice.packet=none"]).voice.packet == "none"


def test_an_ibp_source_that_does_not_exist_is_refused_by_both_engines():
    bursty = Scenario().changed({"traffic.source": "ibp"})
    rate = bursty.traffic.load_kbps * 1000 * 625e-6 / (8 * bursty.traffic.message_bytes)
    least = (1 - rate) * (1 - 2 * rate)
    assert bursty.changed({"traffic.scv": least}).traffic.scv == least
    with pytest.raises(ScenarioError, match=r"\[traffic\] scv = .* at least") as caught:
        bursty.changed({"traffic.scv": 0.999 * least})
    assert caught.value.key == "traffic.scv"
    with pytest.raises(ScenarioError, match="less than a message a slot") as caught:
        bursty.changed({"traffic.message_bytes": 10})
    assert caught.value.key == "traffic.load_kbps"


def test_a_simulated_device_is_in_at_most_eight_piconets():
    def star(piconets: int) -> Scenario:
        plans = [{"name": f"c{k}", "central": f"c{k}", "peripherals": ["hub"]} for k in range(piconets)]
        flows = [{"from": "c0", "to": "c1"}]
        return Scenario.from_dict({"network": {"topology": "custom", "piconet_list": plans, "flows": flows}})

    require_simulated(star(8))
    with pytest.raises(NotBuiltYet, match=r'"hub".*at most 8 piconets, not in 9'):
        require_simulated(star(9))


def test_a_removed_key_is_read_at_its_old_default_only():
    old = {"link": {"quality_memory_s": 0.0}, "transport": {"forward_ack": False}}
    assert Scenario.from_dict(old) == Scenario()
    with pytest.raises(ScenarioError, match=r"unknown key 'link\.quality_memory_s'"):
        Scenario.from_dict(old | {"link": {"quality_memory_s": 1}})


def test_every_key_has_a_description():
    for name in Scenario.model_fields.keys() - {"title"}:
        for key, inner in type(getattr(Scenario(), name)).model_fields.items():
            assert inner.description, f"{name}.{key}"
            assert inner.default_factory is None or declared(inner, "default_in_words"), f"{name}.{key}"


def computed(asked: list[str]) -> Results:
    """Results of two metrics and a label; whatever is computed is written down in `asked`."""

    def variable(name: str, *dims: str) -> Variable:
        asked.append(name)
        return Variable(dims, np.arange(6.0).reshape(3, 2))

    metrics = {name: partial(variable, name, "replication", "flow") for name in ("goodput_kbps", "rtt_s")}
    labels = {"flow": lambda: Variable(("flow",), np.array([1, 2]))}
    return Results(Computed(later=metrics), Computed(later=labels), Computed({"seed": 3}))


def test_only_metrics_that_are_read_are_computed_and_each_once():
    asked: list[str] = []
    results = computed(asked)
    assert "rtt_s" in results and "delay_s" not in results and list(results) == ["goodput_kbps", "rtt_s"]
    assert not asked
    for _ in range(2):
        assert results.goodput_kbps.sel(flow=2).values.tolist() == [1.0, 3.0, 5.0]
        assert results["goodput_kbps"].attrs["units"] == "kbit/s"
    assert asked == ["goodput_kbps"]


def test_results_are_read_like_the_dataset_that_they_become():
    results, dataset = computed([]), computed([]).to_dataset()
    assert results.equals(dataset) and results.identical(computed([]))
    assert not results.equals(dataset + 1)
    assert len(results) == len(dataset) and "\n" not in repr(results)
    assert repr(results).startswith("<Results") and "goodput_kbps 2.5" in repr(results)
    for name in dataset.data_vars:
        xr.testing.assert_identical(results[name], dataset[name])
    xr.testing.assert_identical(results[["rtt_s"]], dataset[["rtt_s"]])
    xr.testing.assert_identical(results.mean("replication"), dataset.mean("replication"))
    xr.testing.assert_identical(pickle.loads(pickle.dumps(results)).to_dataset(), dataset)
    dataset["more"] = dataset.rtt_s  # a dataset is a copy
    assert "more" not in results.to_dataset()
    with pytest.raises(AttributeError, match="no_such"):
        _ = results.no_such
    with pytest.raises(KeyError, match="no_such"):
        _ = results["no_such"]


def test_importing_the_package_imports_no_engine():
    code = (
        "import sys, btqueue; "
        "heavy = {'jax', 'numba', 'numpy', 'pydantic', 'xarray'}; "
        "print(btqueue.__version__, sorted(heavy & set(sys.modules))); "
        "btqueue.load('venugopal-2006/piconet'); "
        "print(sorted({'jax', 'numba', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["0.2.0 []", "[]"]


SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@given(scenarios(), st.text(max_size=50).filter(str.isprintable))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=SLOW)
def test_writing_and_reading_returns_the_same_scenario_with_the_same_flows(drawn, title):
    """Presets and defaults are plain values in what is written in full."""
    is_read_as_written(drawn.with_(title=title))
