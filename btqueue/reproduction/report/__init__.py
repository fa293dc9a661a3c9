"""The reproduction report: every claim of the publications, judged by simulation and model, on one page.

`judging` runs the checks and keeps what is finished (`store`), `outcomes` is what they found, `counts` and
`errors` summarise it, `pictures` finds the figures; `markdown`, `html` and `document` write the report.
"""
