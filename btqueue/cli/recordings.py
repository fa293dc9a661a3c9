"""`simulate --trace --pcap --series`: one replication, written down while it is played."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from btqueue.cli.documents import print_json
from btqueue.cli.engines import prepare_simulator, run_hints
from btqueue.cli.errors import BadInput, say
from btqueue.cli.files import SERIES, WRITERS, AnswerFirst, Target
from btqueue.cli.options import Call
from btqueue.progress_bars import bars
from btqueue.scenario import Scenario
from btqueue.scenario.problems import closest
from btqueue.scenario.topology import topology


def record(
    call: Call,
    scenario: Scenario,
    *,
    trace: Path | None,
    pcap: Path | None,
    at: str | None,
    series: Path | None,
    step_s: float,
    device: str,
) -> None:
    """Play the first replication of a scenario, write the files, and print which there are.

    After Ctrl-C a trace is kept: it is valid up to there.

    Raises:
        BadInput: a file cannot be written, there is no node `at`, or the step does not fit into the run.
        MissingPackage: pyarrow, for the trace, is not installed.
    """
    if at is not None and pcap is None:
        raise BadInput("--at: names the host of --pcap FILE.pcap, which is missing")
    targets = (
        Target.checked(trace, "--trace", {".parquet": "Parquet"}, force=call.force),
        Target.checked(pcap, "--pcap", {".pcap": "pcap"}, force=call.force),
    )
    table = Target.checked(series, "--series", SERIES, force=call.force)
    from btqueue.simulator.scope import require_simulated
    from btqueue.simulator.traces.extras import require

    require_simulated(scenario)
    plan = topology(scenario)
    host = plan.nodes[plan.flows[0].source] if at is None else at
    if host not in plan.nodes:
        guess = closest(host, plan.nodes)
        hint = f"did you mean '{guess}'?" if guess else f"the nodes are {', '.join(plan.nodes[:20])}"
        raise BadInput(f"--at {at}: there is no such node; {hint}")
    if series is not None and not 0 < step_s <= scenario.run.duration_s:
        raise BadInput(f"--step {step_s:g}: must be above 0 and at most run.duration_s")
    if trace is not None:
        require("pyarrow", "Parquet files")
    if call.out is not None:
        raise BadInput("--out: goes with replications; --trace, --pcap and --series play a single one")
    if device == "gpu":
        raise BadInput("--device gpu: --trace, --pcap and --series are written on the CPU")
    hinted = run_hints(scenario, quiet=call.quiet)
    written: dict[str, dict[str, Any]] = {}
    with AnswerFirst() as files:
        prepare_simulator(scenario, quiet=call.quiet)
        if any(targets):
            files.tried(_play, scenario, targets, host, written, call.quiet)
        if table is not None:
            from btqueue.simulator.statistics.series import time_series

            found = time_series(scenario, step_s=step_s)
            if files.tried(table.write, WRITERS, found, scenario):
                written["series"] = {"path": str(table.path), "steps": found.sizes["time"]}
        if call.as_json:
            print_json(scenario, hints=hinted, files=written, quiet=call.quiet)
        elif written:
            from btqueue.cli.tables import recordings_table

            recordings_table(call.heading, written)


def _play(
    scenario: Scenario, targets: tuple[Target | None, ...], host: str, written: dict[str, Any], quiet: bool
) -> None:
    """Play the replication into the files of trace and capture, and note them among the written ones."""
    from btqueue.simulator.traces.trace_files import record

    interrupted = False
    with ExitStack() as stack:
        parts = [t and stack.enter_context(t.replaced()) for t in targets]
        try:
            with bars(quiet=quiet) as bar:
                progress = bar("simulating", total=1)
                events = record(scenario, parquet=parts[0], pcap=parts[1], at=host, progress=progress)
        except KeyboardInterrupt:
            if not all(part is None or part.exists() for part in parts):
                raise  # before anything was written
            interrupted = True  # the files are moved to their places when the block ends
        except OSError as error:
            names = ", ".join(f"{t.option} {t.path}" for t in targets if t)
            raise BadInput(f"{names}: cannot be written ({error.strerror or error})") from None
    if interrupted:
        say("the files hold the run up to the interruption")
        raise KeyboardInterrupt
    facts = {"trace": {"events": events}, "pcap": {"host": host}}
    for target, (name, about) in zip(targets, facts.items(), strict=True):
        if target is not None:
            written[name] = {"path": str(target.path), **about}
