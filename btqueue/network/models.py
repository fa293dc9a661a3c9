"""The models of the solver, what each covers, and which of them is asked.

Of the models of single systems the first that covers a scenario is asked, and the theory of stations where
none does. `btqueue.network` has a module of each name here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.chain.covers import CHAIN, not_a_chain
from btqueue.network.open_paths.covers import OPEN_PATHS, not_open_paths
from btqueue.network.paths.covers import PATHS, not_paths
from btqueue.network.piconet.covers import PICONET, not_a_piconet
from btqueue.network.request_reply.covers import REQUEST_REPLY, not_request_reply
from btqueue.network.two_way_link.covers import TWO_WAY_LINK, not_two_way_link
from btqueue.network.whole_segments import in_segments, not_whole_segments
from btqueue.scenario.errors import Problem
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, key_of_table, problems_of

KINDS = {
    "network.topology": 1000,
    "transport.protocol": 100,
    "network.peripherals": 30,
    "link.adaptation": 30,
    "traffic.source": 20,
    "network.flows": 10,
    "network.outside_links": 5,
}
"""Keys that say what kind of scenario it is, and how far off a model of another kind is."""

SESSIONS = 1000
"""How far off sessions are from everything else."""


HOSTS: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "transport.variant": ("tahoe", "reno", "newreno", "sack", "vegas"),
        "transport.sack": (False,),
        "transport.retransmit_only_lost": (False,),
        "transport.forward_ack": (False,),
        "transport.loss_detection": ("duplicates",),
        "transport.timer_tick_s": (0.0,),
        "transport.loss_probes": (False,),
        "transport.frto": (False,),
        "transport.rto_variation": ("smoothed",),
        "transport.buffers": ("fixed",),
        "transport.hystart": (False,),
        "transport.ssthresh_rule": ("flight",),
        "transport.byte_counting": (False,),
        "transport.recovery_exit_grows": (False,),
        "transport.timeout_exit_holds": (False,),
        "transport.inflate_by_one": (False,),
        "transport.ack_ends_backoff": (False,),
        "transport.impatient_timer": (False,),
        "transport.vegas_on_srtt": (False,),
        "transport.quick_acks": (0,),
    }
)
"""What hosts and simulators do beyond the RFCs that models know: for each key the values that are covered."""


def _of_hosts(scope: Scope) -> Scope:
    """Return what a model covers, less TCP that none knows, and messages that share segments."""

    def further(scenario: Scenario) -> Iterator[Limit]:
        yield from scope.further(scenario)
        yield from not_whole_segments(scenario)

    return scope._replace(values=MappingProxyType({**HOSTS, **scope.values}), further=further)


_SCOPES = {
    "chain": Scope("the model of chains", CHAIN, not_a_chain),
    "request_reply": Scope("the model of sessions", REQUEST_REPLY, not_request_reply),
    "two_way_link": Scope("the model of one link", TWO_WAY_LINK, not_two_way_link),
    "piconet": Scope("the model of a piconet of queues", PICONET, not_a_piconet),
    "paths": Scope("the model of paths over outside links", PATHS, not_paths),
    "open_paths": Scope("the model of loads over outside links", OPEN_PATHS, not_open_paths),
}
MODELS: Mapping[str, Scope] = MappingProxyType({name: _of_hosts(scope) for name, scope in _SCOPES.items()})
"""The models of single systems by name; the first that covers a scenario is asked."""
STATIONS = "stations"
"""The theory of any network, which is asked where none of a single system covers a scenario."""


def problems(scenario: Scenario) -> list[Problem]:
    """Return a problem for each part of *scenario* that the model which comes closest does not cover.

    Empty if a model covers all of it.
    """
    return min((_lacks(name, scenario) for name in MODELS), key=distance)


def _lacks(name: str, scenario: Scenario) -> list[Problem]:
    return problems_of(MODELS[name], in_segments(scenario))


def covering(scenario: Scenario) -> str | None:
    """Return the name of the model that answers *scenario*, a key of `MODELS`, if any does."""
    return next((name for name in MODELS if not _lacks(name, scenario)), None)


def distance(problems: list[Problem]) -> int:
    """Return how far a scenario is from what a model is about."""
    far = {key_of_table(problem.key): problem for problem in problems}  # as one, if all flows have it
    return sum(
        SESSIONS if key == "traffic.source" and _between_sessions(problem) else KINDS.get(key, 1)
        for key, problem in far.items()
    )


def _between_sessions(problem: Problem) -> bool:
    """Whether sessions meet a model that has none, or the reverse."""
    return "request-reply" in str(problem.allowed) or problem.value == "request-reply"


def model_of(scenario: Scenario) -> str:
    """Return the name of the model that answers *scenario*: a key of `MODELS`, or `STATIONS`."""
    return covering(scenario) or STATIONS
