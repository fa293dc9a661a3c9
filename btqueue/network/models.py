"""The models of the solver, what each covers, and which of them is asked.

`solve` has two solvers, one that solves and one that follows, each of several models; of those of a solver
the first that covers a scenario is asked. `btqueue.network` has a module of each name here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from btqueue.network.chain.covers import CHAIN, not_a_chain
from btqueue.network.followed.covers import FOLLOWED, not_followed
from btqueue.network.multihop.covers import MULTIHOP, not_multihop
from btqueue.network.open_paths.covers import OPEN_PATHS, not_open_paths
from btqueue.network.paths.covers import PATHS, not_paths
from btqueue.network.piconet.covers import PICONET, not_a_piconet
from btqueue.network.request_reply.covers import REQUEST_REPLY, not_request_reply
from btqueue.network.two_way_link.covers import TWO_WAY_LINK, not_two_way_link
from btqueue.network.whole_segments import in_segments, not_whole_segments, of_full_segments
from btqueue.scenario.errors import NotBuiltYet, Problem, shown
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, always, key_of_table, problems_of

Solver = Literal["analytic", "followed"]
SOLVERS: tuple[Solver, ...] = ("analytic", "followed")

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


def _of_hosts(name: str, scope: Scope) -> Scope:
    """Return what a model covers, less TCP that none knows; shared segments only where they are followed."""

    def further(scenario: Scenario) -> Iterator[Limit]:
        yield from scope.further(scenario)
        if name not in SAMPLED:
            yield from not_whole_segments(scenario)

    return scope._replace(values=MappingProxyType({**HOSTS, **scope.values}), further=further)


SAMPLED = frozenset({"followed"})
"""Models that follow connections by sampling: their answers are smooth only to their standard error."""

_SCOPES = {
    "chain": Scope("the model of chains", CHAIN, not_a_chain),
    "request_reply": Scope("the model of sessions", REQUEST_REPLY, not_request_reply),
    "two_way_link": Scope("the model of one link", TWO_WAY_LINK, not_two_way_link),
    "piconet": Scope("the model of a piconet of queues", PICONET, not_a_piconet),
    "multihop": Scope("the queueing model of several piconets", MULTIHOP, not_multihop),
    "paths": Scope("the model of paths over outside links", PATHS, not_paths),
    "open_paths": Scope("the model of loads over outside links", OPEN_PATHS, not_open_paths),
    "followed": Scope("the model that follows connections", FOLLOWED, not_followed, always),
}
MODELS: Mapping[str, Scope] = MappingProxyType(
    {name: _of_hosts(name, scope) for name, scope in _SCOPES.items()}
)
"""The models by name; of those of one solver, the first that covers a scenario is asked."""


def problems(scenario: Scenario) -> list[Problem]:
    """Return a problem for each part of *scenario* that no model of `run.solver` covers.

    Of the models it is the one that comes closest whose problems are returned.
    """
    wanted = scenario.run.solver
    if wanted == "auto":
        return lacking(scenario, [name for solver in SOLVERS for name in models_of(scenario, solver)])
    found = lacking(scenario, models_of(scenario, wanted))
    other = "followed" if wanted == "analytic" else "analytic"
    if found and covering(scenario, other):
        available = f'"auto" or "{other}"'
        message = (
            f"[run] solver = {shown(wanted)}: this solver does not cover the scenario; possible: {available}"
        )
        return [Problem(message, key="run.solver", value=wanted, allowed=available), *found]
    return found


def lacking(scenario: Scenario, models: Iterable[str]) -> list[Problem]:
    """Return what the model that comes closest does not cover; nothing if one covers all."""
    return min((_lacks(name, scenario) for name in models), key=distance)


def seen_by(name: str, scenario: Scenario) -> Scenario:
    """Return a scenario as a model reads it: in whole segments, or as the stream of bytes that it is."""
    return of_full_segments(scenario) if name in SAMPLED else in_segments(scenario)


def _lacks(name: str, scenario: Scenario) -> list[Problem]:
    return problems_of(MODELS[name], seen_by(name, scenario))


def models_of(scenario: Scenario, solver: Solver) -> list[str]:
    """Return the models of a solver, in turn; what some do with a scenario depends on the scenario."""
    return [name for name, scope in MODELS.items() if scope.follows(scenario) == (solver == "followed")]


def covering(scenario: Scenario, solver: Solver) -> str | None:
    """Return the model by which a solver answers *scenario*, if any does."""
    return next((name for name in models_of(scenario, solver) if not _lacks(name, scenario)), None)


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
    """Return the name of the model that is asked first about *scenario*, a key of `MODELS`.

    Raises:
        NotBuiltYet: there is none; the message is about the one that comes closest.
    """
    if found := problems(scenario):
        raise NotBuiltYet(found)
    return next(iter(candidates(scenario).values()))


def candidates(scenario: Scenario) -> dict[Solver, str]:
    """Return the models that may answer *scenario* by `run.solver`, by solver, the analytic one first."""
    wanted = SOLVERS if scenario.run.solver == "auto" else (scenario.run.solver,)
    return {solver: name for solver in wanted if (name := covering(scenario, solver)) is not None}
