"""The command `btqueue`, which is `python -m btqueue`."""

import gc
import sys

from btqueue.search_path import without_working_directory

OBJECTS = 100_000
"""New objects after which Python looks for garbage: imports make many that all stay, and to look at them
again and again is a tenth of a command's start."""


def main() -> None:
    """Be the command, and import no file of the working directory, where somebody's scenario lies."""
    gc.set_threshold(OBJECTS)
    sys.path[:] = without_working_directory(sys.path)
    from btqueue.cli import app
    from btqueue.cli.errors import end_interrupted

    try:
        app(prog_name="btqueue")
    except SystemExit as end:
        end_interrupted(end)
        raise


if __name__ == "__main__":
    main()
