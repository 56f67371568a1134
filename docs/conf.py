"""The documentation site: Sphinx with the pydata theme, numpydoc and sphinx-gallery.  ``make docs`` builds it."""

import os

import quartic

project = "quartic"
author = "The quartic developers"
copyright = "the quartic developers"  # noqa: A001
release = version = quartic.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's configuration holds functions

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says the types
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False  # autosummary's own template lists them
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("quartic",),
    "reference_url": {"quartic": None},
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "copyfile_regex": r".*\.csv",
    "run_stale_examples": os.environ.get("QUARTIC_DOCS_STALE") == "1",
}

html_theme = "pydata_sphinx_theme"
html_title = "quartic"
html_static_path = ["_static"]
html_css_files = ["quartic.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
