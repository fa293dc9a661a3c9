"""Every command over every shipped scenario with `python -W error`: no warning, no stack trace."""

import re
import subprocess
import sys

import pytest
from commands import DEADLINE_S, ENVIRONMENT

from btqueue.scenario import list_models

STRICT = ENVIRONMENT | {"PYTHONWARNINGS": "error"}  # of the workers that a command starts
SHORT = ("run.duration_s=2", "run.warmup_s=0.5", "run.replications=2")
SETS = [word for setting in SHORT for word in ("--set", setting)]
COMMANDS = {
    "models": [],
    "solve": ["--json", "--out", "solved.nc"],
    "simulate": [*SETS, "--out", "simulated.csv"],
    "compare": [*SETS, "--all", "--out", "compared.nc"],
    "sweep": [*SETS, "--over", "traffic.message_bytes=900,1000", "--engine", "both", "--threads", "1"],
    "sensitivity": ["--key", "transport.mss_bytes", "--threads", "1"],
    "dimension": ["--choose", "transport.mss_bytes=900,1000", "--maximize", "goodput_kbps", "--no-confirm"],
    "check": ["simulated.csv", *SETS, "--scenario"],
}
"""Arguments of each command before the name of a scenario."""
CHEAP = "chen-2004/adaptive-1"


PROGRAM = """
import sys
from btqueue.cli import app
for line in sys.stdin:
    try:
        app(line.split())
    except SystemExit as end:
        print("ends with", end.code or 0, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == CHEAP else pytest.mark.long) for name in list_models()],
)
def test_no_command_warns_over_a_shipped_scenario(name, tmp_path):
    lines = [" ".join([command, *words, name]) for command, words in COMMANDS.items()]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        input="\n".join(lines), cwd=tmp_path, env=STRICT, capture_output=True, text=True,
        timeout=len(lines) * DEADLINE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert not any(word in done.stderr for word in ("Traceback", "Warning")), done.stderr[-2000:]
    found = map(int, re.findall(r"^ends with (\d+)$", done.stderr, re.MULTILINE))
    codes = dict(zip(COMMANDS, found, strict=True))
    assert set(codes.values()) <= {0, 2, 3}, done.stderr[-2000:]
    # every shipped scenario can be simulated
    assert codes["models"] == codes["simulate"] == codes["check"] == 0
