"""Sphinx configuration; the command is in CONTRIBUTING.md."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "Tessella"
author = "The Tessella developers"
copyright = "The Tessella developers, BSD-3-Clause"
release = version = installed_version("tessella")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network: the files of MathJax on the site
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "tessella_pages",
]
# Links into the manuals of others need the network: sphinx -t online.
if tags.has("online"):  # noqa: F821 (Sphinx provides it)
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
    }

exclude_patterns = ["_build", "_generated", "_templates", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
add_module_names = False
numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_.*\.py$",
    "within_subsection_order": "tessella_pages.example_order",
    "doc_module": ("tessella",),
    "backreferences_dir": "api/backreferences",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "default_thumb_file": None,
    "thumbnail_size": (400, 280),
    "nested_sections": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "Tessella"
html_static_path = ["_static"]
html_css_files = ["tessella.css"]
html_js_files = ["breaks.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "native",
}
# On the published site every version has a folder, and this variable names it: "dev" or "0.1".
# The list of all folders is beside them and written by _ext/site_versions.py.
if folder := os.environ.get("TESSELLA_DOCS_FOLDER"):
    html_theme_options |= {
        "switcher": {"json_url": "../switcher.json", "version_match": folder},
        "check_switcher": False,  # it is on the site, not in the sources
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
        "show_version_warning_banner": True,
        "header_links_before_dropdown": 5,  # the switch needs the place of one
    }
# Pages of their own have no section to navigate in.
html_sidebars = {
    page: []
    for page in (
        "architecture",
        "benchmarks",
        "changelog",
        "extending",
        "paper-to-code",
        "quickstart",
        "reproducibility",
        "stability",
        "why",
    )
}
