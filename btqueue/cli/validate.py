"""`btqueue validate`: the claims of the publications against both engines, and the reproduction report."""

import time
from pathlib import Path

from btqueue.cli.errors import put, put_json
from btqueue.cli.options import Call


def validate(
    call: Call, paper: list[str] | None = None, claims: list[str] | None = None, fresh: bool = False
) -> None:
    """Judge every claim of the publications by simulation and by model; write the reproduction report.

    Finished claims are kept: after Ctrl-C the same command goes on. A claim that is not reproduced is a
    finding, not a failure: the exit code is 0.
    """
    from btqueue.cli import validate_report as work
    from btqueue.cli.files import AnswerFirst
    from btqueue.reproduction.report.document import summary

    wanted = work.chosen(paper or (), claims or ())
    folder = work.made_folder(call.out or Path())
    targets = work.report_targets(folder, force=call.force)
    began = time.perf_counter()
    outcomes = work.judge(wanted, fresh=fresh, threads=call.threads, quiet=call.quiet)
    report = work.report_of(outcomes, wall_s=time.perf_counter() - began)
    with AnswerFirst() as files:
        written = [str(folder / t.path.name) for t in targets if files.tried(t.write, work.WRITERS, report)]
        if call.as_json:
            put_json({"files": written, **summary(report)})
        else:
            work.print_summary(report)
            for file in written:
                put(file)
