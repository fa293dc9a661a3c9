"""The command `btqueue`, which is `python -m btqueue`."""

import sys

from btqueue.search_path import without_working_directory


def main() -> None:
    """Be the command, and import nothing that lies in the working directory, beside somebody's scenario."""
    sys.path[:] = without_working_directory(sys.path)
    from btqueue.cli import app

    app(prog_name="btqueue")


if __name__ == "__main__":
    main()
