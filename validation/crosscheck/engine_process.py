"""An engine in a process of its own: a run that hangs can be stopped, and one that dies harms nobody.

Run as a script it answers, line by line on standard input, {"engine": ..., "scenario": ...} with one line of
JSON: what became of it, in the words of the exception or of `oddities`.
"""

import json
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any


class LineProcess:
    """A process that answers lines of JSON one by one, each by a deadline; started anew when it has ended."""

    def __init__(self, *command: str) -> None:
        """Start nothing yet; the process says "ready", in quotes or without, when it can be asked."""
        self.command = (sys.executable, *command)
        self.process: subprocess.Popen[str] | None = None

    def ask(self, asked: str, deadline_s: float, interrupt_s: float | None = None) -> str | None:
        """Return the answer; None if there is none in time, and the process is killed, empty if it has ended.

        Args:
            asked: a line.
            deadline_s: of the answer, or of the answer to Ctrl-C.
            interrupt_s: time after which the process gets a Ctrl-C.
        """
        if self.process is None or self.process.poll() is not None:
            self.close()
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8"
            )
            if (self._line(600.0) or "").strip('"') != "ready":
                raise RuntimeError("a process does not start")
        assert self.process.stdin
        with suppress(BrokenPipeError):
            self.process.stdin.write(asked + "\n")
            self.process.stdin.flush()
        line = self._line(deadline_s if interrupt_s is None else interrupt_s)
        if line is None and interrupt_s is not None:
            self.process.send_signal(signal.SIGINT)
            line = self._line(deadline_s)
        if line is None:
            self.close()
        return line

    def ended_with(self) -> int:
        """Return the exit code of the process, which has ended."""
        assert self.process is not None
        code = self.process.wait()
        self.close()
        return code

    def _line(self, timeout_s: float) -> str | None:
        """Return the next line; None if there is none in time, empty if the process has ended."""
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        return self.process.stdout.readline().rstrip("\n") if ready else None

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class EngineProcess(LineProcess):
    """Runs scenarios one after the other in another process, each with a deadline."""

    def __init__(self) -> None:
        """Start nothing yet."""
        super().__init__("-W", "error::RuntimeWarning", __file__)

    def outcome(
        self, engine: str, scenario: dict[str, Any], *, deadline_s: float, interrupt_s: float | None = None
    ) -> dict[str, Any]:
        """Return what became of a run; with `interrupt_s`, after one Ctrl-C so long after its beginning.

        The process is killed at the deadline: the outcome is then {"hangs": deadline_s}.
        """
        line = self.ask(json.dumps({"engine": engine, "scenario": scenario}), deadline_s, interrupt_s)
        if line is None:
            return {"hangs": deadline_s}
        return json.loads(line) if line else {"died": self.ended_with()}


def answer(engine: str, data: dict) -> dict[str, Any]:
    """Run an engine and return what became of it: refused, no answer, interrupted, foreign, or oddities."""
    import numpy as np

    from btqueue.network import ImpossibleAnswer, NoConvergence, solve
    from btqueue.scenario import Scenario, ScenarioError
    from btqueue.simulator import simulate

    try:
        scenario = Scenario.from_dict(data)
        result = solve(scenario) if engine == "solve" else simulate(scenario, threads=1)
    except ScenarioError as error:
        return {"refused": str(error)}
    except (NoConvergence, ImpossibleAnswer) as error:
        return {"no answer": str(error)}
    except KeyboardInterrupt as error:
        partial = getattr(error, "partial", None)
        return {"interrupted": None if partial is None else dict(partial.sizes)}
    except BaseException as error:
        return {"foreign": f"{type(error).__name__}: {error}"}
    oddities = [
        str(name) for name, values in result.data_vars.items() if np.isinf(values).any() or (values < 0).any()
    ]
    return {"oddities": oddities, "goodput_kbps": float(result["goodput_kbps"].mean())}


if __name__ == "__main__":
    from btqueue.cli.engines import keep_compiled_models

    signal.signal(signal.SIGINT, signal.default_int_handler)
    keep_compiled_models()
    answer("simulate", {"run": {"duration_s": 0.001, "warmup_s": 0.0}})  # compiles the simulator
    print("ready", flush=True)
    while True:
        try:
            asked = json.loads(sys.stdin.readline() or "null")
            if asked is None:
                break
            print(json.dumps(answer(**{"engine": asked["engine"], "data": asked["scenario"]})), flush=True)
        except KeyboardInterrupt:
            continue
