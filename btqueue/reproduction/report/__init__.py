"""The reproduction report: every claim of the publications, judged by simulation and model, on one page.

`judging` runs the checks and keeps finished ones, `outcomes` holds their findings and counts
them; `sentences`, `markdown`, `html` and `document` write the report.
"""
