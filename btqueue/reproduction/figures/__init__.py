"""The figures of publications, drawn again: a table or a script in `figures/<paper>/` for each.

A table, `fig_6_7.toml`, has a `kind`, a `title`, a `caption` (the content of the published figure, and our
reading of its unclear points), the ids of `claims` on the figure, and the keys of its kind. A figure that no
kind can draw is a script, `fig_6.py`: its docstring is title and caption, `CLAIMS` are the ids, and its
function `draw` is given a `Work`, which answers scenarios (from a store on disk where it can) and says how
far it is; it returns or yields `Picture`s. Modules:

* `catalogue`: all figures by name, drawing them, and records of drawn figures
* `curve_tables`, `sessions` (and box plots), `event_panels`: the kinds
* `curve_panels`: panels of curves
* `work`: `Work`, `Picture`, `Settings`; `points`: the store of answers; `runs`: the events of a single run
* `published`: claims, and marks in a picture
"""
