"""Commands of btqueue in this process, so that a test can put stand-ins in the places of the engines."""

from typing import Any

from typer.testing import CliRunner, Result

from btqueue.cli import app


def run(*words: object, code: int = 0, **settings: Any) -> Result:
    """Run a command, which must end with this exit code; return what it printed."""
    result = CliRunner().invoke(app, [str(word) for word in words], **settings)
    assert result.exit_code == code, (words, result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def failure(*words: object, code: int = 2) -> str:
    """Run a command that must fail without an answer and without a stack trace; return its message."""
    result = run(*words, code=code)
    assert result.stdout == "" and result.stderr and "Traceback" not in result.stderr
    return " ".join(result.stderr.split())
