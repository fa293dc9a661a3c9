"""The log of a run, and the files that it is written to."""
