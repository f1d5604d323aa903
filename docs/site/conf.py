"""Configures Sphinx, which builds the site from the copy of the pages that stage.py makes."""
import pathlib

project = "Ferrite"
copyright = "the Ferrite authors, MIT licence"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Ferrite"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(pathlib.Path(__file__).parent / "_static" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]

NOT_SEARCHED = {"docs/benchmarks", "docs/mutants", "CHANGELOG"}


def leave_out_of_search(app, name, source):
    if name in NOT_SEARCHED:
        source[0] = "---\nnosearch: true\n---\n\n" + source[0]


def setup(app):
    app.connect("source-read", leave_out_of_search)
