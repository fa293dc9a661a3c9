"""The reproduction report: every claim of the publications, judged by simulation and model, on one page.

`judging` runs the checks and keeps finished ones (`store`), `outcomes` holds their findings, `summary` counts
them, `pictures` finds the figures; `words`, `markdown`, `html` and `document` write the report.
"""
