"""The claims of publications, judged by both engines.

`record` holds what is on record and what a verdict is, `judgement` the statistics, `engines` the simulator
and the models as the checks see them, `recorded` the checks that a record describes by itself, and a package
for each publication the others. `papers.judge` judges any of them.
"""
