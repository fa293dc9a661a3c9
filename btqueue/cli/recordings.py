"""`simulate --trace --pcap --series`: one replication, written down while it is played."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from btqueue.cli.engines import prepare_simulator
from btqueue.cli.errors import BadInput, say
from btqueue.cli.files import SERIES, WRITERS, AnswerFirst, Target
from btqueue.progress_bars import bars
from btqueue.scenario import Scenario
from btqueue.scenario.problems import closest
from btqueue.scenario.topology import topology


class Recordings:
    """The files to make of the first replication of a scenario; `written` describes the finished files."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        trace: Path | None,
        pcap: Path | None,
        at: str | None,
        series: Path | None,
        step_s: float,
        force: bool = False,
    ) -> None:
        """Check the recordings that are asked for, if any, before anything is computed.

        Raises:
            BadInput: a file cannot be written, there is no node `at`, or the step does not fit into the run.
            MissingPackage: pyarrow, for the trace, is not installed.
        """
        self.scenario, self.step_s = scenario, step_s
        self.written: dict[str, dict[str, Any]] = {}
        self.asked = any(path is not None for path in (trace, pcap, series))
        if at is not None and pcap is None:
            raise BadInput("--at: names the host of --pcap FILE.pcap, which is missing")
        self.trace = Target.checked(trace, "--trace", {".parquet": "Parquet"}, force=force)
        self.pcap = Target.checked(pcap, "--pcap", {".pcap": "pcap"}, force=force)
        self.series = Target.checked(series, "--series", SERIES, force=force)
        if not self.asked:
            return
        from btqueue.simulator.scope import require_simulated
        from btqueue.simulator.traces.extras import require

        require_simulated(scenario)
        plan = topology(scenario)
        self.host = plan.nodes[plan.flows[0].source] if at is None else at
        if self.host not in plan.nodes:
            guess = closest(self.host, plan.nodes)
            hint = f"did you mean '{guess}'?" if guess else f"the nodes are {', '.join(plan.nodes[:20])}"
            raise BadInput(f"--at {at}: there is no such node; {hint}")
        if series is not None and not 0 < step_s <= scenario.run.duration_s:
            raise BadInput(f"--step {step_s:g}: must be above 0 and at most run.duration_s")
        if trace is not None:
            require("pyarrow", "Parquet files")

    def make(self, files: AnswerFirst, *, quiet: bool) -> None:
        """Play the replication and write the files; a failure is kept in *files*.

        After Ctrl-C a trace is kept: it is valid up to there.
        """
        prepare_simulator(self.scenario, quiet=quiet)
        if self.trace is not None or self.pcap is not None:
            files.tried(self._record, quiet)
        if self.series is not None:
            from btqueue.simulator.statistics.series import time_series

            found = time_series(self.scenario, step_s=self.step_s)
            if files.tried(self.series.write, WRITERS, found, self.scenario):
                self.written["series"] = {"path": str(self.series.path), "steps": found.sizes["time"]}

    def _record(self, quiet: bool) -> None:
        from btqueue.simulator.traces.trace_files import record

        interrupted = False
        with ExitStack() as stack:
            parts = [t and stack.enter_context(t.replaced()) for t in (self.trace, self.pcap)]
            try:
                with bars(quiet=quiet) as bar:
                    progress = bar("simulating", total=1)
                    events = record(
                        self.scenario, parquet=parts[0], pcap=parts[1], at=self.host, progress=progress
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
            self.written["pcap"] = {"path": str(self.pcap.path), "host": self.host}
