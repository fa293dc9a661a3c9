"""Sphinx settings: `sphinx-build -W docs docs/_build`."""

from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import btqueue

project = "btqueue"
author = "the btqueue authors"
release = version = btqueue.__version__

extensions = [
    "myst_nb",  # Markdown, and notebooks that are run while the site is built
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120  # s a cell; the first solve compiles
exclude_patterns = ["_build", "paper"]  # the paper is in the form of its journal

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # docstrings write names in single backticks
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # fields are said once, in the docstring of their class

html_theme = "pydata_sphinx_theme"
html_title = "btqueue"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_search_scorer = str(
    Path(__file__).parent / "_static" / "search.js"
)  # a guide before the functions that it explains
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "show_nav_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "reference/coverage": [],  # wide tables
        "explanation/slopes-against-simulation": [],
    },
}
html_sidebars = {"index": []}


def formula_in_text(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula of a sentence as MathML, which browsers draw without a script and without a network."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def formula_on_its_own(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands on separate lines."""
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def is_field(app: Sphinx, kind: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Leave the fields of named tuples to the docstring of their class."""
    return True if type(member).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> None:
    """Make the formulas' renderer and the choice of members known."""
    app.connect("autodoc-skip-member", is_field)
    app.add_html_math_renderer("mathml", (formula_in_text, None), (formula_on_its_own, None))
