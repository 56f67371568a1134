"""The methods of whatever can be looked at: results, and fitted estimators."""

from __future__ import annotations

import os
from typing import Any


class Reported:
    """``plot`` and ``write_report``, of a :class:`quartic.Decomposition` or a fitted estimator."""

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, truth: Any = None, shape: tuple[int, int] | None = None
    ) -> Any:
        """A matplotlib figure of spectrum and certificates, and what else there is; see :func:`quartic.report.plot`.

        Parameters
        ----------
        path : str or path, optional
            Where to write the figure; the suffix is the format.
        truth : array-like of shape (m, d), or an object with such ``components``, optional
            True components: found ones are shown against them.
        shape : (int, int), optional
            Of the images that the components are, which are then shown.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> import quartic
        >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
        >>> figure = quartic.decompose(planted.tensor).plot()  # plot("spectrum.png") writes it to a file
        >>> [ax.get_title("left") for ax in figure.get_axes()]
        ['Spectrum of the tensor', 'Certificates']
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> figure = quartic.SpectralDictionaryLearning().fit(data.samples).plot()
        >>> [ax.get_title("left") for ax in figure.get_axes()][:3]
        ['Spectrum of the cumulant', 'Certificates', 'Uncertainty']
        """
        from quartic.report import plot  # only where something is looked at

        return plot(self, path, truth=truth, shape=shape)

    def write_report(
        self,
        path: str | os.PathLike[str],
        *,
        truth: Any = None,
        shape: tuple[int, int] | None = None,
        title: str | None = None,
    ) -> None:
        """Write an HTML page, all at once or not at all; see :func:`quartic.report.write_report`.

        Parameters
        ----------
        path : str or path
        truth : array-like of shape (m, d), or an object with such ``components``, optional
            True components: found ones are shown against them.
        shape : (int, int), optional
            Of the images that the components are, which are then shown.
        title : str, optional
            What the page is about.

        Examples
        --------
        >>> import os, tempfile, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.write_report(os.path.join(folder, "report.html"), truth=data, title="Planted atoms")
        ...     os.listdir(folder)
        ['report.html']
        """
        from quartic.report import write_report

        write_report(self, path, truth=truth, shape=shape, title=title)
