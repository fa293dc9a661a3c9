"""Every command over every shipped scenario with `python -W error`: no warning, no stack trace."""

import subprocess
import sys

import pytest

from btqueue.scenario import list_models

from .commands import DEADLINE_S, ENVIRONMENT

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


def run(command, arguments, folder):
    """Run a command; it must end as the command line promises, and not by a warning or a stack trace."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "btqueue", command, *arguments],
        cwd=folder,
        env=STRICT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode in (0, 2, 3), (command, arguments, done.stderr[-2000:])
    assert "Traceback" not in done.stderr, (command, arguments, done.stderr[-2000:])
    assert "Warning" not in done.stderr, (command, arguments, done.stderr[-2000:])
    return done


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == CHEAP else pytest.mark.long)
        for name in [CHEAP, *(name for name in list_models() if name != CHEAP)]
    ],
)
def test_no_command_warns_over_a_shipped_scenario(name, tmp_path):
    codes = {
        command: run(command, [*words, name], tmp_path).returncode for command, words in COMMANDS.items()
    }
    assert codes["models"] == codes["simulate"] == codes["check"] == 0, (
        "every shipped scenario can be simulated"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("figures", []),
        ("figures", ["venugopal-2006/6.10", "--quick", "--fresh"]),
        ("validate", ["--quick", "--no-figures", "--paper", "suliman-2005"]),
        ("sensitivity", [CHEAP, "--method", "closed"]),
        ("models", ["--schema"]),
    ],
)
def test_no_other_command_warns(command, arguments, tmp_path):
    assert run(command, arguments, tmp_path).returncode == 0
