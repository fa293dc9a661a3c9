"""`simulate --trace --pcap --series`: one replication, written down while it is played."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from btqueue.cli.engines import prepare_simulator
from btqueue.cli.errors import BadInput, say
from btqueue.cli.files import SERIES, AnswerFirst, Target
from btqueue.progress_bars import bars
from btqueue.scenario import Scenario
from btqueue.scenario.problems import closest
from btqueue.scenario.topology import topology

TRACE = {".parquet": "Parquet"}
PCAP = {".pcap": "pcap"}


@dataclass
class Recordings:
    """The files to make of the first replication of a scenario; `written` describes the finished files."""

    scenario: Scenario
    trace: Target | None
    pcap: Target | None
    at: str | None
    series: Target | None
    step_s: float
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        scenario: Scenario,
        *,
        trace: Path | None,
        pcap: Path | None,
        at: str | None,
        series: Path | None,
        step_s: float,
        force: bool = False,
    ) -> Recordings | None:
        """Return the recordings asked for, checked before anything is computed; None without any.

        Raises:
            BadInput: a file cannot be written, there is no node `at`, or the step does not fit into the run.
            MissingPackage: pyarrow, for the trace, is not installed.
        """
        if at is not None and pcap is None:
            raise BadInput("--at: names the host of --pcap FILE.pcap, which is missing")
        if trace is None and pcap is None and series is None:
            return None
        from btqueue.simulator.scope import require_simulated

        require_simulated(scenario)
        nodes = topology(scenario).nodes
        if at is not None and at not in nodes:
            guess = closest(at, nodes)
            hint = f"did you mean '{guess}'?" if guess else f"the nodes are {', '.join(nodes[:20])}"
            raise BadInput(f"--at {at}: there is no such node; {hint}")
        if series is not None and not 0 < step_s <= scenario.run.duration_s:
            raise BadInput(f"--step {step_s:g}: must be above 0 and at most run.duration_s")
        if trace is not None:
            from btqueue.simulator.traces.extras import require

            require("pyarrow", "Parquet files")
        return cls(
            scenario,
            Target.checked(trace, "--trace", TRACE, force=force) if trace else None,
            Target.checked(pcap, "--pcap", PCAP, force=force) if pcap else None,
            at,
            Target.checked(series, "--series", SERIES, force=force) if series else None,
            step_s,
        )

    def make(self, files: AnswerFirst, *, quiet: bool) -> None:
        """Play the replication and write the files; a failure is kept in *files*.

        After Ctrl-C a trace is kept: it is valid up to there.
        """
        prepare_simulator(self.scenario, quiet=quiet)
        if self.trace is not None or self.pcap is not None:
            files.write(self._record, quiet)
        if self.series is not None:
            from btqueue.simulator.statistics.series import time_series

            found = time_series(self.scenario, step_s=self.step_s)
            if files.write(self.series.write, found, self.scenario):
                self.written["series"] = {"path": str(self.series.path), "steps": found.sizes["time"]}

    def _record(self, quiet: bool) -> None:
        from btqueue.simulator.traces.trace_files import record

        interrupted = False
        plan = topology(self.scenario)
        host = plan.nodes[plan.flows[0].source] if self.at is None else self.at
        with ExitStack() as stack:
            parts = [t and stack.enter_context(t.replaced()) for t in (self.trace, self.pcap)]
            try:
                with bars(quiet=quiet) as bar:
                    progress = bar("simulating", total=1)
                    events = record(
                        self.scenario, parquet=parts[0], pcap=parts[1], at=host, progress=progress
                    )
            except KeyboardInterrupt:
                if not all(part is None or part.exists() for part in parts):
                    raise  # before anything was written
                interrupted = True  # the files are moved to their places when the block ends
            except OSError as error:
                names = ", ".join(f"{t.option} {t.path}" for t in (self.trace, self.pcap) if t)
                raise BadInput(f"{names}: cannot be written ({error.strerror or error})") from None
        if interrupted:
            say("the files hold the run up to the interruption")
            raise KeyboardInterrupt
        if self.trace is not None:
            self.written["trace"] = {"path": str(self.trace.path), "events": events}
        if self.pcap is not None:
            self.written["pcap"] = {"path": str(self.pcap.path), "host": host}
