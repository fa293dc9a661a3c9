"""`btqueue explore`: a page in the browser that redraws curves while keys are turned."""

import os
import webbrowser

from btqueue.cli.errors import put, say
from btqueue.cli.options import Call

PORT = 8765
"""Unless another is asked for: links that were copied work again with the next start."""


def explore(call: Call, port: int = PORT, browser: bool = True) -> None:
    """Change a scenario's keys in the browser: curves of the model come at once, simulated points later.

    The page is for this machine and this user alone: it needs the address that is printed, with its token.
    Ctrl-C ends it.
    """
    from btqueue.cli.engines import keep_compiled_models, prepare_simulator
    from btqueue.simulator.traces.extras import require

    wanted, quiet = call.base, call.quiet
    for package in ("starlette", "uvicorn", "websockets"):
        require(package, "pages in the browser", "explore")
    from btqueue.explorer.server import Explorer, listen

    with listen(port) as listening:
        prepare_simulator(wanted, quiet=quiet)
        keep_compiled_models()
        if not quiet:
            say("solving the scenario once; the first time of a version takes half a minute")
        explorer, taken = Explorer(wanted), listening.getsockname()[1]
        explorer.prepare()
        put(explorer.address(taken))
        if not quiet:
            say("Ctrl-C ends the page")
        if browser:
            _show(explorer.address(taken), taken)
        try:
            explorer.serve(listening)
        except KeyboardInterrupt:  # by which it is meant to end
            return


def _show(address: str, port: int) -> None:
    if os.environ.get("SSH_CONNECTION"):
        say(
            "this is a remote host: on the machine with the browser, run "
            f"ssh -N -L {port}:127.0.0.1:{port} THIS-HOST, and open the address there"
        )
        return
    try:
        opened = webbrowser.open(address)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        say("no browser was found here: open the address in one yourself")
