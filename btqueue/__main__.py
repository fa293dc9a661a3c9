"""`python -m btqueue` is the command `btqueue`."""

from btqueue.cli import app

if __name__ == "__main__":
    app(prog_name="btqueue")
