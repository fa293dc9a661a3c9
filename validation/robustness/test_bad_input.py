"""Bad input is named by key, value, what is allowed and what was meant; only ScenarioError comes out."""

import operator
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis

from btqueue.scenario import Scenario, ScenarioError, load
from btqueue.scenario.problems import key_names

STANDARD = thesis()

SHORT = {
    "FLOWS": "network.flows",
    "LINKS": "network.outside_links",
    "INITIAL_WINDOW": "transport.initial_window_segments",
    "RECEIVE_WINDOW": "receive_window_segments",
    "RETRANSMISSION_SLOTS": "voice.retransmission_slots",
    "ADAPTATION_PACKETS": "link.adaptation_packets",
    "BUFFERS": "transport.buffers",
    "HEADER_BYTES": "transport.header_bytes",
    "OWN_CONNECTION": "transport.connection_per_session",
    "LAN": 'name="lan", from="host", to="c1"',
    "FLOW": 'from="p1.1", to="c1"',
    "NODE": 'node="p1.1"',
    "CUSTOM": 'network.topology=custom; network.flows=[{from="x", to="y"}]; network.piconet_list',
    "STAR": '{name="A", central="a", peripherals=["x", "y"]}, {name="B"',
}
"""What stands for the words in capitals in settings and keys below."""


def in_full(text: str) -> str:
    for short, whole in SHORT.items():
        text = text.replace(short, whole)
    return text


# settings, key that must be named, words that must appear; the fuzz of `crosscheck` damages every key
BAD = [
    ("polling.limit=0", "polling.limit", "[polling] limit = 0 | whole number of at least 1"),
    ('polling.limit="5"', "polling.limit", '"5" | write numbers without quotes'),
    ("polling.limit=true", "polling.limit", "= true | whole number"),
    ("polling.discipline=e-limted", "polling.discipline", 'did you mean "e-limited" | "exhaustive"'),
    ("flow_control.token_rate_kbps=-250", "flow_control.token_rate_kbps", "-250 | above 0"),
    ("flow_control.bucket_bytes=338", "flow_control.bucket_bytes", "339 bytes for a DH5"),
    ("radio.ber=nan", "radio.ber", "nan | finite"),
    ("radio.ber_good=0.01", "radio.ber_good", "must not be worse than the bad one"),
    ("radio.model=gilbert-elliott; radio.bad_s=0", "radio.bad_s", "mean stay above 0"),
    ("radio.per=0.1", "radio.per", 'model = "constant"'),
    ("radio.model=constant; radio.per=0.1; radio.ber=1e-4", "radio.per", "not both"),
    ("link.packets=DH5,DH4", "link.packets", '"DH4" | one of DM1, DH1 | did you mean'),
    ("link.packets=DH5,3", "link.packets[2]", "3 | a text"),
    ("link.packets=DH5,DH5", "link.packets", "listed twice"),
    ("link.arq=0", "link.arq", '"unlimited" | at least 1'),
    ("link.adaptation_thresholds=[0.2, 0.1, 0.3]", "link.adaptation_thresholds", "must increase"),
    ("link.flush_timeout_s=1", "link.flush_timeout_s", "link.arq"),
    ("network.topology=scatternet; network.peripherals=7", "network.peripherals", "bridge"),
    ('network.topology=custom; FLOWS=[{from="a", to="b"}]', "network.topology", "piconet_list"),
    ("network.topology=chain; FLOWS=ring", "network.flows", '"piconet" or "scatternet"'),
    ("FLOWS=[3]", "FLOWS[1]", "{ from, to, name, group, law"),
    ('FLOWS=[{from="p1.1"}]', "FLOWS[1].to", "missing"),
    ('FLOWS=[{from="p1.1", to="p1.9"}]', "FLOWS[1].to", "c1, p1.1, p1.2"),
    ('FLOWS=[{from="c1", to="c1"}]', "FLOWS[1].to", "cannot end where it starts"),
    ('FLOWS=[{FLOW, name="p1.2>c1"}, {from="p1.2", to="c1"}]', "FLOWS[1].name", "another flow has this name"),
    ('FLOWS=[{FLOW, group="p1.2>c1"}, {from="p1.2", to="c1"}]', "FLOWS[1].group", "a flow has this name"),
    ('FLOWS=[{FLOW, name="a[1]"}]', "FLOWS[1].name", "without brackets"),
    ('FLOWS=[{FLOW, group="17"}]', "FLOWS[1].group", "no whole number"),
    ('FLOWS=[{FLOW, law="file"}]', "FLOWS[1].law", "arrival_file"),
    ('FLOWS=[{FLOW, law="poison"}]', "FLOWS[1].law", 'did you mean "poisson"'),
    ("transport.min_rto_s=65", "transport.min_rto_s", "max_rto_s = 64"),
    ("transport.vegas_adjustment=per-rt", "transport.vegas_adjustment", 'did you mean "per-rtt"'),
    ("INITIAL_WINDOW=9", "INITIAL_WINDOW", "= 8"),
    (
        "INITIAL_WINDOW=3; FLOWS=[{FLOW, RECEIVE_WINDOW=2}]",
        "FLOWS[1].RECEIVE_WINDOW",
        "initial_window_segments = 3",
    ),
    ("FLOWS=[{FLOW, grp=1}, {FLOW, grp=2}]", "FLOWS[1].grp", "[1].group'? (2 entries have"),
    ('FLOWS=[{FLOW, source="greedy"}]', "FLOWS[1].source", "mean 'FLOWS[1].law'?"),
    ('network.peripherals=6; FLOWS=[{from="p1.14", to="c1"}]', "FLOWS[1].from", 'mean "p1.6"'),
    ("polling.limit=50..400:50ms", "polling.limit", "a range has LOW..HIGH or LOW..HIGH:STEP"),
    ("polling.limit=1-8", "polling.limit", "a range has LOW..HIGH or LOW..HIGH:STEP"),
    ("FLOWS=[{FLOW, load=20}]", "FLOWS[1].load", "mean 'FLOWS[1].load_kbps'?"),
    ("FLOWS=[{FLOW, min_rot_s=1.0}]", "FLOWS[1].min_rot_s", "FLOWS[1].min_rto_s"),
    ("FLOWS=[{FLOW, tcp_delay_s=1.0}]", "FLOWS[1].tcp_delay_s", "unknown"),
    ("FLOWS=[{FLOW, min_rto_s=-1.0}]", "FLOWS[1].min_rto_s", "above 0"),
    ("FLOWS=[{FLOW, min_rto_s=100.0}]", "FLOWS[1].min_rto_s", "not exceed max_rto_s = 64"),
    ("FLOWS=[{FLOW, max_rto_s=0.5}]", "FLOWS[1].max_rto_s", "transport.min_rto_s = 1"),
    ('FLOWS=[{FLOW, protocol="centaurus"}]', "FLOWS[1].protocol", "sessions"),
    ('FLOWS=[{FLOW, protocol="none", law="greedy"}]', "FLOWS[1].law", "answers"),
    ('FLOWS=[{FLOW, protocol="none", handshake=true}]', "FLOWS[1].handshake", "TCP"),
    ("FLOWS=[{FLOW, application_timeout_s=1.0}]", "FLOWS[1].application_timeout_s", "sessions"),
    ('transport.preset=linux; FLOWS=[{FLOW, windows="segments"}]', "FLOWS[1].windows", "segments"),
    ("transport.variant=tahoe; transport.sack=true", "transport.sack", "does not know selective"),
    ("transport.variant=reno; transport.sack=true", "transport.sack", "does not know selective"),
    ("transport.variant=vegas; transport.sack=true", "transport.sack", "does not know selective"),
    ("transport.alpha=4", "transport.alpha", "beta = 3"),
    ("voice.packet=HV1; voice.links=2", "voice.links", "at most 1 HV1"),
    ("voice.packet=EV3; voice.links=3", "voice.links", "no slot for data"),
    ("voice.packet=2-EV3; RETRANSMISSION_SLOTS=12", "RETRANSMISSION_SLOTS", "exceed 10"),
    ("voice.packet=2-EV3; RETRANSMISSION_SLOTS=3", "RETRANSMISSION_SLOTS", "even"),
    (
        "voice.packet=HV3; link.packets=DH1; RETRANSMISSION_SLOTS=2",
        "RETRANSMISSION_SLOTS",
        "0: HV packets are never repeated",
    ),
    ("voice.packet=HV3", "link.packets", "DH5 | 6 slots | 1 HV3 link leaves 4 | DM3"),
    ("voice.packet=HV1; link.packets=DH1", "voice.links", "1 HV1 link leaves no slot"),
    ("voice.packet=HV3; voice.links=2; link.packets=DH1,DM3", "link.packets", "2 HV3 links leave 2 | DM1"),
    (
        "voice.packet=HV3; link.packets=DH3; link.adaptation=best; ADAPTATION_PACKETS=DM5",
        "ADAPTATION_PACKETS",
        "DM5",
    ),
    ("BUFFERS=tuned; transport.protocol=none", "BUFFERS", "as Linux tunes them need TCP"),
    (
        "transport.preset=linux; transport.variant=vegas; transport.sack=false",
        "BUFFERS",
        'else set transport.buffers = "fixed" | is of preset = "linux"',
    ),
    (
        "HEADER_BYTES=0; link.l2cap_header_bytes=0",
        "HEADER_BYTES",
        "with link.l2cap_header_bytes = 0 an acknowledgement would have no bytes",
    ),
    ("run.warmup_s=autom", "run.warmup_s", '"auto"'),
    ("network.relay=packet; link.adaptation=best", "network.relay", 'use relay = "segment"'),
    ("network.relay=packet; LINKS=[{LAN}]", "network.relay", 'use relay = "segment"'),
    ('LINKS=[{LAN}, {name="second", from="host", to="c1"}]', "LINKS", "joined already"),
    ('LINKS=[{name="lan", FLOW}]', "LINKS", "joined already"),
    (
        'LINKS=[{LAN, medium="m"}, {name="b", from="d", to="c1", medium="m", rate_kbps=5}]',
        "LINKS",
        'rate_kbps = 5: must be 10000 | "lan"',
    ),
    ('LINKS=[{LAN, medium="m", half_duplex=false}]', "LINKS", "shared by both directions"),
    ('CUSTOM=[STAR, central="a", peripherals=["z"]}]', "network.piconet_list", "one piconet only"),
    ('CUSTOM=[STAR, central="x", peripherals=["a"]}]', "network.piconet_list", "the other way round"),
    ('radio.links=[{node="p1.3", model="perfect"}]', "radio.links[1].node", "p1.1, p1.2 | did you mean"),
    ('FLOWS=[{from="c1", to="tablet"}]', "FLOWS[1].to", '(c1, p1.1, p1.2); topology = "custom" has'),
    ("radio.links=[{NODE, ber=0.1}]", "radio.links[1].ber", 'perfect radio | model = "constant"'),
    ('radio.links=[{NODE, model="constant", ber=0.1, per=0.1}]', "radio.links[1].per", "not both"),
    ('radio.links=[{NODE, model="gilbert-elliott", ber_bad=0}]', "radio.links[1].ber_bad", "worse"),
    ('radio.links=[{NODE}, {NODE, direction="up"}]', "radio.links[2].node", "earlier entry"),
    ("traffic.application_timeout_s=5", "traffic.application_timeout_s", "request-reply"),
    ("traffic.source=request-reply; OWN_CONNECTION=true", "OWN_CONNECTION", "handshake"),
]


@pytest.mark.parametrize(("sets", "key", "words"), BAD)
def test_a_bad_value_is_named_with_its_key_and_what_is_allowed(sets, key, words):
    with pytest.raises(ScenarioError) as caught:
        STANDARD.with_sets(in_full(sets).split("; "))
    assert {problem.key for problem in caught.value.problems} == {in_full(key)}
    assert all(word in str(caught.value) for word in in_full(words).split(" | ")), str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("polling.limt", "polling.limit"),
        ("polling.buffer_packets", "flow_control.buffer_packets"),
        ("network.slaves", "network.peripherals"),
        ("flow_control.S", "flow_control.buffer_packets"),
        ("load_kbps", "traffic.load_kbps"),
        ("transport.min_rto", "transport.min_rto_s"),
        ("transport.window", "transport.receive_window_segments"),
        ("traffic.period_s", "traffic.load_kbps"),
        ("link.packet", "link.packets"),
        ("voice.packets", "voice.packet"),
    ],
)
def test_an_unknown_key_comes_with_the_one_that_was_meant(wrong, meant):
    table, dot, name = wrong.partition(".")
    for read in (STANDARD.changed, Scenario.from_dict):
        with pytest.raises(ScenarioError) as caught:
            read({table: {name: 1}} if dot and read == Scenario.from_dict else {wrong: 1})
        assert (caught.value.key, caught.value.guess) == (wrong, meant)
        assert f"unknown key '{wrong}'" in str(caught.value) and f"'{meant}'" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"polling.limit": 1}, "write [polling] limit"),
        ({"network": {"flows[1].load_kbps": 1}}, "write [network] flows[1].load_kbps"),
    ],
)
def test_a_guess_is_never_the_key_that_was_written(data, said):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(data)
    assert caught.value.guess is None
    assert "did you mean" not in str(caught.value) and said in str(caught.value)


MANY_PARTS = "a." * 100_000 + "'a'"
"""A dotted key: `tomllib` alone takes minutes for it."""


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("polling.limit", "write table.key=value"),
        ("", "write table.key=value"),
        ("polling=5", "polling is a table"),
        ("polling.limit=", "whole number"),
        ("link.packets=[DH5, DHX]", "DHX"),
        ("link.packets=[[", "a list"),
        ("traffic.load_kbps=1e400", "finite number"),
        ("polling.limit=" + "9" * 5000, "whole number"),
        ("run.jitter_s=5ms", r"write the number without a unit, in s: 0\.005$"),
        ("energy.tx_ma=5uA", r"write the number without a unit, in mA: 0\.005$"),
        ("traffic.load_kbps=0.16 Mbit/s", "write the number without a unit, in kbit/s: 160$"),
        ("radio.per=5%", r"write the number without a unit: 0\.05$"),
        ("run.jitter_s=" + "9" * 400 + "ms", "write the number without a unit, in s$"),
        ("link.packets=" + "[" * 50_000 + "]" * 50_000, "a text"),
        (f"radio.links=[{{{MANY_PARTS} = 1}}]", "must be a table"),
        (f"network.flows[{'9' * 5000}].load_kbps=1", "did you mean"),
    ],
)
def test_a_bad_setting(setting, words):
    with pytest.raises(ScenarioError, match=words):
        STANDARD.with_sets([setting])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[polling]\nlimit = \n", "line 2"),
        (b"[polling]\nlimit = 5\nlimit = 6\n", "no valid TOML"),
        (bytes(range(256)) * 4, "no text in UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00", "no text"),
        (b"[polling]\nlimit = " + b"9" * 5000, "too many digits"),
        (b"x = " + b"[" * 100_000, "too deeply"),
        (b"[run]\n%s = 1" % MANY_PARTS.encode(), r"a key of more than 100 parts \(at line 2\)"),
        (b"#'''\n[%s]" % MANY_PARTS.encode(), r"a key of more than 100 parts \(at line 2\)"),
        (b"x = {%s = 1}" % MANY_PARTS.encode(), r"a key of more than 100 parts \(at line 1\)"),
        (b"#" * 10_000_001, "too large"),
    ],
    ids=["syntax", "twice", "binary", "program", "digits", "deep", "key", "header", "inline", "large"],
)
def test_a_bad_file(tmp_path, content, words):
    file = tmp_path / "scenario.toml"
    file.write_bytes(content)
    with pytest.raises(ScenarioError, match=words) as caught:
        load(file)
    assert "scenario.toml" in str(caught.value)


def test_a_missing_file_or_model_comes_with_a_close_match(tmp_path):
    with pytest.raises(ScenarioError, match="did you mean 'venugopal-2006/piconet'"):
        load("venugopal-2006/picnet")
    with pytest.raises(ScenarioError, match="did you mean 'venugopal-2006/piconet-4'"):
        load("piconet-4")
    (tmp_path / "office.toml").write_text("[network]\n")
    with pytest.raises(ScenarioError, match=r"did you mean '.*office\.toml'"):
        load(tmp_path / "ofice.toml")


TABLES = {name: key_names(type(getattr(STANDARD, name))) for name in Scenario.model_fields if name != "title"}
KEYS = [f"{table}.{key}" for table, keys in TABLES.items() for key in keys]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**300, 10**310),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=5),
    st.datetimes(),
    st.sampled_from(["ring", "none", "all", "DH5", "e-limited"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.sampled_from(["from", "to", "name"])), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
tables = st.sampled_from(sorted(TABLES)).flatmap(
    lambda table: st.tuples(
        st.just(table),
        values | st.dictionaries(st.sampled_from(TABLES[table]) | st.text(max_size=8), values, max_size=4),
    )
)
odd = st.sampled_from(
    [{"network": {"flows": [{"from": {}, "to": []}]}}, {"network": {"topology": []}, "self": 1}]
)
more = st.dictionaries(
    st.text(max_size=5) | scalars.filter(lambda x: x.__hash__ is not None), values, max_size=2
)
of_a_key = st.tuples(st.sampled_from(KEYS), st.text(max_size=20) | values.map(repr)).map("=".join)


def load_content(content: str | bytes) -> Scenario:
    with NamedTemporaryFile(suffix=".toml") as file:
        file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)
        file.flush()
        return load(file.name)


DOORS = {
    "an object": (Scenario.from_dict, odd | values | more),
    "tables": (Scenario.from_dict, st.builds(operator.or_, more, st.lists(tables, max_size=4).map(dict))),
    "settings": (STANDARD.with_sets, st.lists(st.text(max_size=30) | of_a_key, max_size=3)),
    "a name": (load, st.text(max_size=60)),
    "a file": (load_content, st.binary(max_size=200) | st.text(max_size=200)),
}


@pytest.mark.parametrize("door", DOORS)
@settings(max_examples=100)
@given(data=st.data())
def test_anything_is_a_scenario_or_a_scenario_error(door, data):
    """A scenario that comes out survives writing and reading."""
    read, given = DOORS[door]
    try:
        scenario = read(data.draw(given))
    except ScenarioError as error:
        assert str(error)
        assert all(problem.message and "\n" not in problem.message for problem in error.problems)
    else:
        assert Scenario.from_dict(scenario.to_dict()) == scenario
