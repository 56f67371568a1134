"""Results to look at: figures, a table of found against planted components, and a page in HTML.

``findings.py`` brings a decomposition or a fitted model into one form, ``figures.py`` draws it, ``page.py`` writes it
as a self-contained page, and ``table.py`` prints what a demo found.

matplotlib is an extra (``plot``) and is imported inside the functions that draw.  They use
its objects only, never ``pyplot``: no window, no display, no global state.

The picture of ``quartic demo`` is made by

>>> import quartic
>>> planted = quartic.datasets.planted_tensor(12, 6, 0.2, error="trap", random_state=0)
>>> result = quartic.decompose(planted.tensor, random_state=0)
>>> figure = result.plot()  # result.plot("spectrum.png") writes it to a file

and a page with everything that is known of it by ``result.write_report("report.html")``.
"""

from quartic.report.figures import plot, plot_certificates, plot_spectrum, require_matplotlib
from quartic.report.page import write_report
from quartic.report.table import compare

__all__ = ["compare", "plot", "plot_certificates", "plot_spectrum", "require_matplotlib", "write_report"]
