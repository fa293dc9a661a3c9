"""The figures of publications, drawn again; one script in `figures/<paper>/` for each.

A script has a docstring, a function `draw`, and, if the publication's record has claims on the figure, their
ids. The first line of the docstring is the title, the rest the caption: the content of the published figure,
and our reading of its unclear points.

    \"\"\"Figure 6.7: scatternet with one peripheral in each piconet, over load and token buffer.

    Five metrics over ...
    \"\"\"

    from btqueue.cli.figures import run_script
    from btqueue.reproduction.figures import Swept, five_panels

    CLAIMS = ("scatternet-goodput-1", "scatternet-rtt-1")


    def draw(work):
        loads = range(80, 181, 20)
        swept = Swept("flow_control.buffer_packets", "S", "packets", range(5, 26, 5))
        yield from five_panels(work, "venugopal-2006/scatternet-1", loads, swept, claims=CLAIMS)


    if __name__ == "__main__":
        run_script(__file__)

`draw` is given a `Work`, which answers scenarios (from a store on disk where it can) and says how far it is;
it returns or yields `Picture`s. Modules:

* `work`: `Work`, `Picture`, `Settings`; `points`: the store of answers
* `load_pages`, `curve_panels`: metrics over one or two keys; `runs`: the events of a single run
* `published`: claims, and marks in a picture
* `catalogue`: all scripts by name, drawing them, and records of drawn figures
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.reproduction.figures.curve_panels import curves
    from btqueue.reproduction.figures.load_pages import Swept, five_panels
    from btqueue.reproduction.figures.work import Picture, Settings, Work

__all__ = ["Picture", "Settings", "Swept", "Work", "curves", "five_panels"]

_HOME = {
    "Picture": "work",
    "Settings": "work",
    "Swept": "load_pages",
    "Work": "work",
    "curves": "curve_panels",
    "five_panels": "load_pages",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: listing the figures needs no matplotlib."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
