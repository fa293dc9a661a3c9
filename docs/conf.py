"""Sphinx settings: `sphinx-build -W docs docs/_build`."""

import btqueue

project = "btqueue"
author = "the btqueue authors"
release = version = btqueue.__version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # docstrings write names in single backticks
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = "btqueue"
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
