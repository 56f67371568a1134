"""The documentation site: Sphinx with the pydata theme, numpydoc and sphinx-gallery.  ``make docs`` builds it."""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

import quartic

project = "quartic"
author = "The quartic developers"
copyright = "the quartic developers"
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


def figures(block, block_vars, gallery_conf):
    """The figures that an example made and named since its last block: quartic draws without ``pyplot``.

    Those of ``pyplot``, which have a number, are shown already.
    """
    shown = block_vars.setdefault("shown_figures", set())
    paths = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and not hasattr(value, "number") and id(value) not in shown:
            shown.add(id(value))
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1], dpi=110, bbox_inches="tight")
    return figure_rst(paths, gallery_conf["src_dir"])


class Order:
    """The order of the gallery: the idea, what is asked first, scale, and what to do when something fails."""

    NAMES = (
        "idea", "tensor", "image_patches", "mixed_images", "correlated", "overcomplete", "pipeline", "stream", "dask",
        "gpu", "failed_run",
    )  # fmt: skip

    def __init__(self, src_dir):
        pass

    def __call__(self, filename):
        """The place of an example."""
        return self.NAMES.index(filename.removeprefix("plot_").removesuffix(".py"))


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": Order,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("quartic",),
    "reference_url": {"quartic": None},
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": (),  # what is printed, not what the last line of a block happens to return
    "min_reported_time": 1e9,
    "copyfile_regex": r".*\.csv",
    "image_scrapers": ("matplotlib", figures),
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
    "secondary_sidebar_items": {"**": ["page-toc"], "experiments": []},  # its table wants the width
}
