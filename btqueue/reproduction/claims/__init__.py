"""The claims of publications, judged by both engines.

`record` reads the record of a publication and defines verdicts, `judgement` holds the statistics, `engines`
the simulator and the models as the checks see them, `recorded` the checks that a record describes by itself.
A module for each publication holds its other checks.
"""
