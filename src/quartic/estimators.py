"""scikit-learn estimators: validate, call ``quartic.dictionary``, store; no mathematics here."""

from __future__ import annotations

import copy
import json
import os
import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import orthogonal_mp_gram
from sklearn.utils import Tags
from sklearn.utils._array_api import check_same_namespace
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from quartic._arrays import (
    Array,
    array_namespace,
    check_random_state,
    device,
    from_numpy,
    is_array_api_obj,
    packed_dim,
    rows_of,
    to_numpy,
    write,
)
from quartic._files import check_suffix, load_arrays, readable, save_arrays
from quartic._fit import Callbacks, unchanged_on_failure
from quartic._reported import Reported
from quartic.algorithms.certify import is_certified
from quartic.certify import Basis, Doubt
from quartic.diagnosis import Diagnosis, diagnose
from quartic.dictionary import frame_for, learn, learn_from_moment, warn_of
from quartic.distributed import Collection, chunk_by_chunk, collected, is_collection
from quartic.evidence.groups import codes_of, split_off
from quartic.evidence.units import ROWS
from quartic.export import save_safetensors
from quartic.frame import Frame
from quartic.learn.attempts import Attempt
from quartic.learned import Learned, LearningReport
from quartic.moments import FourthMoment
from quartic.result import Status
from quartic.samples import Held, check_columns, trim

FORMS = ("auto", "accumulated", "implicit")
ALGORITHMS = (None, "omp", "lars", "lasso_lars", "lasso_cd", "threshold")  # those of sklearn's sparse_encode


class SpectralEstimator(
    Reported, ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """What both estimators share: one fit, two ways to present it.  Not private by name: errors of Python name it."""

    moment_: FourthMoment
    _noun = "atom"  # what is called so

    def __init__(
        self,
        n_components: Any = None,
        *,
        refine: bool = True,
        moment: str = "auto",
        temperature: float | None = None,
        frame: Frame | None = None,
        known_components: Any = None,
        rows: str = "auto",
        trim: bool = True,
        transform_algorithm: str | None = None,
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.moment = moment
        self.temperature = temperature
        self.frame = frame
        self.known_components = known_components
        self.rows = rows
        self.trim = trim
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask array or dataframe, or Collection
            Of a Dask collection only sums, and a subsample, come to the caller (see ``docs/scale.md``).
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts a sample twice, a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), or str, optional
            What each sample belongs to, where those of one subject, session, image or trial depend on each other:
            labels that are whole numbers or strings, or the name of a column of a dataframe, which is no feature then.
            What is certified is tested on other groups than it was found in: from fewer than ten nothing is.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> spoiled = np.append(data.samples, np.ones((5, 5)), axis=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(spoiled, sample_weight=np.repeat([1.0, 0.0], [2000, 5]))
        >>> model.status_.code, quartic.metrics.match(data.components, model.components_).found()
        ('complete', 5)
        """
        progress = Callbacks(self, X)
        with unchanged_on_failure(self):
            if is_collection(X):
                data, w, codes = self._collected(X, sample_weight, groups), None, None
            else:
                X, groups = split_off(X, groups)
                data = self._validated(X, ensure_min_samples=2)
                w, codes = _weights(sample_weight, data), _codes(groups, data)
            n, known = self._checked(self.n_features_in_, accumulating=not self.refine)
            data = self._begun(data) if is_collection(data) else data
            learned = learn(
                data,
                n,
                frame=self.frame,
                sample_weight=w,
                known=known,
                refine=bool(self.refine),
                form=self.moment,
                temperature=self.temperature,
                groups=codes,
                ordered=self._ordered,
                gross=bool(self.trim),
                rng=check_random_state(self.random_state),
                callback=progress,
            )
            self.__dict__.pop("moment_", None)
            self._store(learned, learned.report.samples, data.like if is_collection(data) else data)
            progress.close()
        warn_of(self.status_)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Add a batch of samples to the moments, and learn from all that were added.

        The first batch fixes the *frame*, unless one is given: its covariance says in which directions the data vary.
        Later samples may have another covariance; the whitener is completed with that of all samples each time.
        Samples are not kept, so there is no refinement: the result is that of the spectral stage, as ``fit`` gives it
        with ``refine=False``.  Gross outliers are trimmed within each batch, unless ``trim=False``.  After ``fit`` or
        :meth:`load` there are no moments to add to, and the first batch starts anew.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), or str, optional
            As in :meth:`fit`, for all batches or for none; a label means the same group in all of them.

        Returns
        -------
        self

        Examples
        --------
        >>> import quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning()
        >>> for batch in (data.samples[:1000], data.samples[1000:]):
        ...     model = model.partial_fit(batch)
        >>> model.n_samples_seen_, quartic.metrics.match(data.components, model.components_).found()
        (2000, 5)
        """
        if is_collection(X):
            raise TypeError(
                "partial_fit takes batches in memory; for a Dask collection use fit, or FourthMoment(frame).update(X) "
                "and fit_moment."
            )
        first = not hasattr(self, "moment_")
        with unchanged_on_failure(self):
            X, groups = split_off(X, groups)
            X = self._validated(X, ensure_min_samples=2 if first else 1, reset=first)
            n, known = self._checked(X.shape[1], accumulating=True)
            codes = _codes(groups, X)
            w, trimmed = trim(X, _weights(sample_weight, X), gross=bool(self.trim))
            rng = check_random_state(self.random_state)
            if first:
                data = Held(X, w, groups=codes)
                frame = self.frame or frame_for(data, data.covariance(), n, rng)
                moment = FourthMoment(frame, like=X)
                seen, left_out = 0, 0
            else:
                moment = copy.deepcopy(self.moment_)  # an interrupted update must not leave half a batch behind
                seen, left_out = self.n_samples_seen_, self.report_.trimmed
            moment._add(X, w, seen, codes)
            learned = learn_from_moment(
                moment, n, known=known, ordered=self._ordered, rng=rng, trimmed=left_out + trimmed
            )
            self._store(learned, seen + X.shape[0], X)
            self.moment_ = moment
        warn_of(self.status_)
        return self

    def fit_moment(self, moment: FourthMoment) -> Self:
        """Learn from moments that were accumulated elsewhere, as :meth:`partial_fit` does from its own.

        Parameters
        ----------
        moment : FourthMoment
            Of all samples, with the groups that were given to it; further batches of ``partial_fit`` are added to a
            copy of it.

        Returns
        -------
        self

        Examples
        --------
        >>> import quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> frame = quartic.Covariance().update(data.samples).frame()
        >>> model = quartic.SpectralICA().fit_moment(quartic.FourthMoment(frame).update(data.samples))
        >>> quartic.metrics.match(data.components, model.mixing_.T).found()
        5
        """
        if not isinstance(moment, FourthMoment):
            raise TypeError(f"moment must be a FourthMoment; got {type(moment).__name__}.")
        if self.frame is not None and self.frame != moment.frame:
            raise ValueError("frame must be that of the moment, or None.")
        with unchanged_on_failure(self):
            self.n_features_in_ = moment.frame.mean.shape[0]
            n, known = self._checked(self.n_features_in_, accumulating=True)
            rng = check_random_state(self.random_state)
            learned = learn_from_moment(moment, n, known=known, ordered=self._ordered, rng=rng)
            self.__dict__.pop("feature_names_in_", None)
            self._store(learned, moment.count, moment.like)
            self.moment_ = copy.deepcopy(moment)
        warn_of(self.status_)
        return self

    def _validated(self, X: Any, **kwargs: Any) -> Array:
        """Samples in float64 or float32: of their own library with scikit-learn's array dispatch, or of NumPy."""
        xp = array_namespace(X) if get_config()["array_api_dispatch"] and is_array_api_obj(X) else np
        check_columns("X", X)
        if hasattr(X, "columns") and hasattr(X, "isna"):  # of a dataframe, the name of a column says more than a count
            missing = X.isna().any()
            empty = [str(name) for name in missing.index[missing.to_numpy()]]
            if empty:
                where = f"in the columns {', '.join(empty[:8])}"
                raise ValueError(f"X contains NaN, {where}: fill in what is missing, or drop these rows.")
        return validate_data(self, X, dtype=[xp.float64, xp.float32], **kwargs)

    def _collected(self, X: Any, sample_weight: Any, groups: Any) -> Collection:
        """Samples in a Dask collection."""
        data = collected(X, sample_weight, groups)
        if data.total < 2:
            raise ValueError(f"samples: at least two are needed; got {data.total}.")
        if data.path is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                "random_state must be a whole number where a checkpoint is kept: its numbers are drawn again."
            )
        self.n_features_in_ = data.features
        _check_feature_names(self, data.header, reset=True)
        return data

    def _begun(self, data: Collection) -> Collection:
        """To be read from the start, or from a checkpoint of the same settings."""
        parameters = self.get_params(deep=False)
        frame, known = parameters.pop("frame"), parameters.pop("known_components")
        settings = (type(self).__name__, sorted(parameters.items()), None if frame is None else frame.key)
        known = None if known is None else np.asarray(to_numpy(known))
        return data.fresh(*settings, known, ordered=self._ordered, gross=bool(self.trim))

    @property
    def _ordered(self) -> bool:
        """Whether the order of rows may mean something."""
        return self.rows == "auto"

    def _ready(self, X: Any, method: str) -> None:
        """Fitted, and on arrays of the same library and device as ``X``: scikit-learn's rule."""
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="components_", method=method)

    def _checked(self, d: int, accumulating: bool) -> tuple[int | None, np.ndarray | None]:
        """The parameters, or errors that say what is wrong with them."""
        n = self.n_components
        if n is not None:
            if isinstance(n, bool) or not isinstance(n, Integral):  # NumPy's bool is none
                raise ValueError(f"n_components must be a whole number or None; got {n!r}.")
            n = int(n)
            if not 1 <= n <= packed_dim(d):
                reach = f"so many squares of atoms with {d} features can be linearly independent"
                raise ValueError(f"n_components must lie between 1 and {packed_dim(d)}, {reach}; got {n}.")
        if not isinstance(self.moment, str) or self.moment not in FORMS:
            raise ValueError(f"moment must be one of {', '.join(FORMS)}; got {self.moment!r}.")
        if self.moment == "implicit" and (accumulating or (n is not None and n > d)):
            raise ValueError(
                "moment='implicit' is for fit with refine=True and no more components than features; elsewhere moments "
                "are accumulated: leave it at 'auto'."
            )
        beta: Any = self.temperature
        number = isinstance(beta, int | float | np.number) and not isinstance(beta, bool)
        if beta is not None and not (number and 0 <= beta < np.inf):
            raise ValueError(f"temperature must be a number, finite and not negative, or None; got {beta!r}.")
        if beta and accumulating:
            raise ValueError(
                f"temperature must be None or 0 where moments are accumulated (partial_fit, or refine=False): weights "
                f"need the samples again; got {beta!r}."
            )
        if not isinstance(self.rows, str) or self.rows not in ROWS:
            raise ValueError(f"rows must be one of {', '.join(ROWS)}; got {self.rows!r}.")
        if not isinstance(self.trim, bool | np.bool_):
            raise ValueError(f"trim must be True or False; got {self.trim!r}.")
        if self.transform_algorithm not in ALGORITHMS:
            names = ", ".join(name for name in ALGORITHMS if name)
            raise ValueError(f"transform_algorithm must be None or one of {names}; got {self.transform_algorithm!r}.")
        for name in ("transform_n_nonzero_coefs", "transform_alpha"):
            if getattr(self, name) is not None and self.transform_algorithm is None:
                raise ValueError(f"{name} belongs to a transform_algorithm: choose one, or leave both out.")
        if self.frame is not None and not isinstance(self.frame, Frame):
            raise ValueError(f"frame must be a quartic.Frame or None; got {type(self.frame).__name__}.")
        if self.frame is not None and self.frame.mean.shape != (d,):
            raise ValueError(f"frame is for {self.frame.mean.shape[0]} features; the samples have {d}.")
        if self.known_components is None:
            return n, None
        return n, _known(self.known_components, d)

    def _store(self, learned: Learned, samples: int, like: Array = None) -> None:
        """What was learned, as attributes in the library and on the device of ``like``; NumPy's when not given."""
        self.learned_ = learned = replace(learned, status=learned.status.about(self._noun))
        self._put(
            like,
            certificates_=learned.certificates,
            certified_=is_certified(learned.certificates),
            uncertainty_=learned.uncertainty,
            stability_=learned.stability,
            kurtosis_=learned.kurtosis,
        )
        self.doubts_, self.bases_ = list(learned.doubts), list(learned.bases)
        self.eps_ = learned.eps
        self.frame_ = learned.frame
        self.status_ = learned.status
        self.report_ = learned.report
        self.temperature_ = learned.report.temperature
        self.effective_samples_ = learned.report.effective
        self.tau_ = learned.report.tau
        self.groups_ = [np.array(group) for group in learned.report.groups]
        self.n_components_ = learned.components.shape[0]
        self.n_iter_ = learned.report.passes
        self.n_samples_seen_ = samples

    def _put(self, like: Array, **arrays: np.ndarray) -> None:
        """Set attributes, in the library and on the device of ``like``."""
        for name, value in arrays.items():
            setattr(self, name, value if like is None else from_numpy(value, like))

    def to_numpy(self) -> Self:
        """The same fitted model with NumPy arrays, whatever library and device it was fitted on.

        Returns
        -------
        estimator
            A new one; this one is not changed.

        Examples
        --------
        >>> import quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> type(model.to_numpy().components_).__name__  # on the host, also after a fit on a GPU
        'ndarray'
        """
        check_is_fitted(self)
        model = copy.copy(self)
        model._store(self.learned_, self.n_samples_seen_)
        if hasattr(self, "moment_"):
            model.moment_ = self.moment_.to_numpy()
        return model

    @property
    def _linear(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What turns samples into codes and back: unmixing, mixing, mean; on the host."""
        kept = self.learned_
        return kept.unmixing, kept.components.T, kept.mean

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _projected(self, X: Any, mean: np.ndarray, unmixing: np.ndarray, thresholds: np.ndarray | None) -> Array:
        """``(X - mean) @ unmixing.T`` in float64, chunk by chunk, in the dtype of ``X``; small codes set to zero."""
        X = self._validated(X, reset=False)
        xp = array_namespace(X)
        offset, projection = from_numpy(mean, X), from_numpy(unmixing.T, X)
        least = None if thresholds is None else from_numpy(thresholds, X)
        out = xp.empty((X.shape[0], unmixing.shape[0]), dtype=X.dtype, device=device(X))
        size = rows_of(X, np.float64)
        for start in range(0, X.shape[0], size):
            chunk = slice(start, min(start + size, X.shape[0]))
            codes = (xp.astype(X[chunk, :], xp.float64) - offset) @ projection
            codes = codes if least is None else xp.where(xp.abs(codes) > least, codes, xp.zeros_like(codes))
            out = write(out, (chunk, slice(None)), xp.astype(codes, X.dtype))
        return out

    def _codes(self, X: Any) -> Array:
        """Codes for the unit rows of the dictionary: linear, or sparse where there are more atoms than dimensions."""
        kept = self.learned_
        if self.transform_algorithm is None and not kept.overcomplete:
            return self._projected(X, kept.mean, kept.unmixing, kept.thresholds)
        given = self._validated(X, reset=False)
        X = to_numpy(given)  # the encoders are scikit-learn's, on the host
        centred = X.astype(np.float64) - kept.mean
        if self.transform_algorithm is not None:
            codes = sparse_encode(
                centred,
                kept.components,
                algorithm=self.transform_algorithm,
                n_nonzero_coefs=self.transform_n_nonzero_coefs,
                alpha=self.transform_alpha,
            )
        else:
            # Orthogonal matching pursuit of samples of norm 1, so that one tolerance fits all.
            norms = np.linalg.norm(centred, axis=1)
            codes = np.zeros((X.shape[0], kept.components.shape[0]))
            some = np.flatnonzero(norms > kept.tolerance * np.linalg.norm(kept.spread))  # others have no active atom
            if some.size:
                unit = centred[some] / norms[some, None]
                gram, inner = kept.components @ kept.components.T, kept.components @ unit.T
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # a sample that is not sparse uses all it can
                    found = orthogonal_mp_gram(gram, inner, tol=kept.tolerance**2, norms_squared=np.ones(some.size))
                codes[some] = found.reshape(kept.components.shape[0], -1).T * norms[some, None]
        return from_numpy(codes, given, given.dtype)

    def _restored(self, codes: Any, components: np.ndarray, mean: np.ndarray) -> Array:
        codes = codes if get_config()["array_api_dispatch"] and is_array_api_obj(codes) else np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != self.n_components_:
            raise ValueError(
                f"X must have {self.n_components_} columns, one for each component; got shape {tuple(codes.shape)}."
            )
        xp = array_namespace(codes)
        dtype = codes.dtype if codes.dtype in (xp.float32, xp.float64) else xp.float64
        restored = xp.astype(codes, xp.float64) @ from_numpy(components, codes) + from_numpy(mean, codes)
        return xp.astype(restored, dtype)

    def diagnose(self, X: Any) -> Diagnosis:
        """Say in plain words whether samples are what a fit assumes, and after a fit whether they are like its own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask array or dataframe, or Collection
            One pass is made over all, the rest is measured on some thousands.

        Returns
        -------
        Diagnosis
            Its ``summary()`` is a line for each assumption (see ``docs/diagnosis.md``); nothing is changed here.

        Examples
        --------
        >>> import quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> model.diagnose(data.samples).ok
        True
        >>> model.diagnose(10 * data.samples).broken  # not what it was fitted to
        ['scale']
        """
        learned = getattr(self, "learned_", None)
        return diagnose(
            X, n_components=self.n_components, learned=learned, rows=self.rows, random_state=self.random_state
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a ``.npz`` file, all at once or not at all; read it with :meth:`load`.

        The accumulated moments of ``partial_fit`` are not part of it: they have files of their own (``moment_.save``).

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.npz"))
        ...     os.listdir(folder)
        ['model.npz']
        """
        check_is_fitted(self)
        kept = self.learned_
        arrays = {name: np.asarray(getattr(kept, name)) for name in _ARRAYS}
        report = {**vars(kept.report), "spectrum": kept.report.spectrum.tolist()}
        report["plan"] = [vars(attempt) for attempt in kept.report.plan]
        seed = int(self.random_state) if isinstance(self.random_state, Integral) else None
        n = None if self.n_components is None else int(self.n_components)
        settings = {
            "n_components": n,
            "refine": bool(self.refine),
            "moment": self.moment,
            "temperature": None if self.temperature is None else float(self.temperature),
            "rows": self.rows,
            "trim": bool(self.trim),
            "transform_algorithm": self.transform_algorithm,
            "transform_n_nonzero_coefs": _plain(self.transform_n_nonzero_coefs),
            "transform_alpha": _plain(self.transform_alpha),
            "random_state": seed,
        }
        text = {"report": report, "status": vars(kept.status), "settings": settings, "samples": self.n_samples_seen_}
        text["doubts"] = [None if doubt is None else doubt.plain() for doubt in kept.doubts]
        text["bases"] = [basis.name for basis in kept.bases]
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            arrays["feature_names_in"] = np.asarray(names, dtype=str)
        arrays |= {**kept.frame.arrays(), "text": np.asarray(json.dumps(text))}
        check_suffix(path, ".npz")
        save_arrays(path, type(self).__name__, arrays)

    def to_safetensors(self, path: str | os.PathLike[str]) -> None:
        """Export the linear unmixing as a ``safetensors`` file, for programs that do not know quartic.

        It holds ``weight (n, d)`` and ``bias (n,)``, so that codes (or sources) are ``X @ weight.T + bias``, ``mixing
        (d, n)`` and ``mean (d,)`` for the way back, and ``certificates (n,)``.  Codes of exactly sparse data are set
        to zero below a threshold by ``transform``; here they are not.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, numpy as np, quartic
        >>> from safetensors.numpy import load_file
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralICA().fit(data.samples)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_safetensors(os.path.join(folder, "model.safetensors"))
        ...     parts = load_file(os.path.join(folder, "model.safetensors"))
        >>> bool(np.allclose(data.samples @ parts["weight"].T + parts["bias"], model.transform(data.samples)))
        True
        """
        check_is_fitted(self)
        save_safetensors(type(self).__name__, self.learned_, self._linear, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        estimator

        Examples
        --------
        >>> import os, tempfile, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.npz"))
        ...     again = quartic.SpectralDictionaryLearning.load(os.path.join(folder, "model.npz"))
        >>> bool((again.transform(data.samples) == model.transform(data.samples)).all())
        True
        """
        data = load_arrays(path, cls.__name__)
        with readable(path):
            text = json.loads(str(data["text"]))
            model = cls(**text["settings"])
            report = text["report"] | {"spectrum": np.asarray(text["report"]["spectrum"])}
            report["window"] = tuple(report["window"])
            report["plan"] = tuple(Attempt(**attempt) for attempt in report.get("plan", ()))
            values: dict[str, Any] = {name: data[name] for name in _ARRAYS} | {
                "eps": float(data["eps"]),
                "tolerance": float(data["tolerance"]),
            }
            status = Status(**text["status"] | {"causes": tuple(text["status"].get("causes", ()))})
            # Files of version 0.1 hold no reasons.
            values["doubts"] = tuple(Doubt.restored(plain) for plain in text.get("doubts", ()))
            values["bases"] = tuple(Basis[name] for name in text.get("bases", ()))
            learned = Learned(**values, frame=Frame.from_arrays(data), status=status, report=LearningReport(**report))
            model.n_features_in_ = learned.components.shape[1]
            if "feature_names_in" in data:
                model.feature_names_in_ = data["feature_names_in"].astype(object)
            model._store(learned, text["samples"])
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.array_api_support = True
        return tags


_ARRAYS = (
    "components", "unmixing", "mean", "spread", "thresholds", "certificates", "uncertainty", "stability", "kurtosis",
    "correlations", "eps", "tolerance",
)  # fmt: skip


class SpectralDictionaryLearning(SpectralEstimator):
    """Learn a dictionary from samples ``y = sum_i x_i a_i``, with a certificate for every atom.

    No starting point and no tuning: the fourth cumulant of the whitened samples is truncated to the span of the ``a_i
    (x) a_i``, the atoms are recovered from it (Schramm and Steurer, COLT 2017, section 5), certified with two halves
    of the samples, and refined on all of them.  Dictionaries of exactly sparse data are recovered exactly.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms, chosen from the data when not given; there may be more than features, where samples are sparse
        (see the notes).  If there are fewer than the data hold, those of most energy, certified ones first.
    refine : bool, default=True
        Whether to refine the atoms on all samples.  Without, the spectral stage uses all samples itself, accumulated
        and without weights, as ``partial_fit`` does.
    moment : {"auto", "accumulated", "implicit"}, default="auto"
        How the fourth moment is held: as a packed matrix, or implicitly by its samples; chosen by operations and
        memory.
    temperature : float, optional
        The ``beta`` of weights ``exp(-beta ||z||^2)`` for the whitened samples of the spectral stage: samples with
        few active atoms count more.  Chosen by effective sample size when not given; where supports are strongly
        correlated, weights inside groups of atoms are used besides.  0 for plain moments, and nothing else.
    frame : Frame, optional
        Centre and whitener to use, from ``Covariance().update(...).frame()``; computed from the samples when not given.
    known_components : array-like of shape (m, n_features), optional
        Atoms that are known already: they are kept as they are, but for what lies outside of the directions that are
        kept of the samples, counted in ``n_components``, and the others are found beside them.
    rows : {"auto", "exchangeable"}, default="auto"
        What the order of rows means.  Where neighbours depend on each other, as in time, halves of the samples are
        made of long stretches of rows; whether they do is tested.  "exchangeable" says that the order means nothing.
        With ``groups`` in ``fit`` it does not matter.
    trim : bool, default=True
        Whether samples that are far longer than all others, as errors are, are left out and counted in the status.
    transform_algorithm : {"omp", "lars", "lasso_lars", "lasso_cd", "threshold"}, optional
        How ``transform`` codes samples, by scikit-learn's ``sparse_encode``.  When not given, codes are linear, or
        those of orthogonal matching pursuit where there are more atoms than dimensions.
    transform_n_nonzero_coefs, transform_alpha : int and float, optional
        Parameters of that algorithm.
    random_state : int, RandomState, Generator or None, default=0
        Two fits with the same whole number give the same answer.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Atoms, unit rows: the one with most energy first, the largest entry of each positive.
    mean_ : ndarray of shape (n_features,)
        Mean of the samples that were not trimmed, with their weights; for exactly sparse data the point that they are
        sparse about.
    certificates_ : ndarray of shape (n_components,)
        Lower bound on the squared correlation of each atom with a true one in whitened coordinates, estimated with
        disjoint halves of the samples; 0 where nothing is proven.  Without noise that is the squared correlation of
        its codes with the true coefficients.
    certified_ : ndarray of shape (n_components,)
        Whether the certificate exceeds 1/2.
    doubts_ : list of Doubt or None
        Why an atom is not certified: a reason, the other axis where it is about a plane, and the figures that decided.
    bases_ : list of Basis
        What each certificate assumes of the sources: that they are independent, or that their signs are.
    uncertainty_ : ndarray of shape (n_components,)
        Estimated sine of the angle between each atom and the truth, from the two halves of the samples; after a
        refinement, whose start they share, it says nothing of other local optima.
    stability_ : ndarray of shape (n_components,)
        Whether each half of the samples alone gives the atom again, by a spectral stage of its own: the squared
        correlation in whitened coordinates, the smaller one of the two; 0 where the halves are too small for that.
    thresholds_ : ndarray of shape (n_components,)
        Codes below it are set to zero by ``transform``; zeros when the data are not exactly sparse.
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of each atom's codes, on the samples of the spectral stage.
    temperature_, effective_samples_ : float
        The ``beta`` that was used, 0 for plain moments, and the effective sample size of the spectral stage.
    tau_ : float
        How far atoms occur together: the largest ``E x_i^2 x_j^2`` over the fourth moments of both, as measured.
    groups_ : list of ndarray
        Indices of atoms that occur together, a group each; single atoms are in none.
    eps_ : float
        Spectral norm of the part of the whitened cumulant that the atoms do not explain.
    frame_ : Frame
        Centre and whitener that were used.
    status_ : Status
        What happened, and the remedy if something did not work.
    report_ : LearningReport
        How the dictionary was found: dimensions, samples, stages, times.
    learned_ : Learned
        All of it, as ``quartic.dictionary`` returns it.
    moment_ : FourthMoment
        After ``partial_fit``: the accumulated moments.
    n_components_, n_iter_, n_samples_seen_ : int
        Number of atoms, passes over all samples in the refinement, and samples seen.

    See Also
    --------
    SpectralICA : The same with the interface of ``FastICA``.

    Notes
    -----
    With more atoms than dimensions the span of the ``a_i (x) a_i`` is found as before, and its rank-one elements by
    subspace power (Kileel and Pereira); atoms are refined by sparse codes and least squares in turn.  It wants samples
    with few active atoms, two or three of several dozen.  Certificates rest on more there: ``docs/overcomplete.md``.

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(4000, 10, supports="blocks", group=5, random_state=0)
    >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
    >>> model.n_components_, model.status_.code
    (10, 'complete')
    >>> quartic.metrics.match(data.components, model.components_).found(1 - 1e-12)
    10
    """

    def _store(self, learned: Learned, samples: int, like: Array = None) -> None:
        super()._store(learned, samples, like)
        self._put(like, components_=learned.components, mean_=learned.mean, thresholds_=learned.thresholds)

    @chunk_by_chunk("n_components_")
    def transform(self, X: Any) -> Array:
        """Codes ``(n_samples, n_components)``; exact zeros where the data are exactly sparse.

        Linear in ``X``, up to a threshold; where there are more atoms than dimensions, by orthogonal matching pursuit
        up to the tolerance that the refinement found, or by the ``transform_algorithm`` that was chosen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask array or dataframe

        Returns
        -------
        array of shape (n_samples, n_components)
            Of a Dask collection: a Dask array, computed later.

        Examples
        --------
        >>> import quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> codes = model.transform(data.samples)
        >>> codes.shape, bool((codes != 0).sum() == (data.codes != 0).sum())  # exactly as sparse as the truth
        ((2000, 5), True)
        """
        self._ready(X, "transform")
        return self._codes(X)

    @chunk_by_chunk("n_features_in_")
    def inverse_transform(self, X: Any) -> Array:
        """Samples from codes: ``X @ components_ + mean_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components), or Dask array

        Returns
        -------
        array of shape (n_samples, n_features)
            Of a Dask array: a Dask array, computed later.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralDictionaryLearning().fit(data.samples)
        >>> bool(np.allclose(model.inverse_transform(model.transform(data.samples)), data.samples))
        True
        """
        self._ready(X, "inverse_transform")
        return self._restored(X, self.learned_.components, self.learned_.mean)


class SpectralICA(SpectralEstimator):
    """Independent component analysis: a drop-in for scikit-learn's ``FastICA``, with a certificate for every source.

    Methods and attributes are those of ``FastICA``.  Of its parameters only ``n_components`` and ``random_state`` are
    there: leave out ``fun``, ``tol``, ``max_iter``, ``whiten`` and the like, of which nothing needs to be chosen.

    Parameters
    ----------
    n_components : int, optional
        Number of sources, chosen from the data when not given; there may be more than features, where sources are
        sparse.  If there are fewer than the data hold, those of most energy, certified ones first; ``FastICA`` would
        give sources of the principal components instead, which mix all of them.
    refine : bool, default=True
        Whether to refine the sources on all samples.
    moment : {"auto", "accumulated", "implicit"}, default="auto"
        How the fourth moment is held; see :class:`SpectralDictionaryLearning`.
    temperature : float, optional
        Weights of the samples; see :class:`SpectralDictionaryLearning`.
    frame : Frame, optional
        Centre and whitener to use; computed from the samples when not given.
    known_components : array-like of shape (m, n_features), optional
        Columns of the mixing matrix that are known already, as rows.
    rows : {"auto", "exchangeable"}, default="auto"
        What the order of rows means; see :class:`SpectralDictionaryLearning`.
    trim : bool, default=True
        Whether samples that are far longer than all others are left out.
    transform_algorithm : {"omp", "lars", "lasso_lars", "lasso_cd", "threshold"}, optional
        How ``transform`` codes samples, by scikit-learn's ``sparse_encode``.  When not given, codes are linear, or
        those of orthogonal matching pursuit where there are more atoms than dimensions.
    transform_n_nonzero_coefs, transform_alpha : int and float, optional
        Parameters of that algorithm.
    random_state : int, RandomState, Generator or None, default=0
        Two fits with the same whole number give the same answer.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unmixing matrix: ``sources = (X - mean_) @ components_.T``, of variance 1.
    mixing_ : ndarray of shape (n_features, n_components)
        Its pseudo-inverse on the span of the samples: ``X = sources @ mixing_.T + mean_``.
    mean_ : ndarray of shape (n_features,)
        Mean of the samples that were not trimmed, with their weights.
    whitening_ : ndarray of shape (n_components, n_features), or (r, n_features) where n_components exceeds r dimensions
        Pre-whitening matrix, from the samples to uncorrelated coordinates of variance 1.
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of each source, with its sign, on the samples of the spectral stage.
    certificates_, certified_, doubts_, bases_, uncertainty_, stability_, temperature_, effective_samples_, tau_,
    groups_, eps_, frame_,
    status_, report_, learned_, moment_, n_components_, n_iter_, n_samples_seen_
        As in :class:`SpectralDictionaryLearning`.

    Examples
    --------
    >>> import numpy as np, quartic
    >>> rng = np.random.default_rng(0)
    >>> S = np.column_stack([rng.laplace(size=5000), rng.uniform(-1, 1, size=5000)])
    >>> model = quartic.SpectralICA().fit(S @ rng.standard_normal((2, 2)))
    >>> sorted(np.sign(model.kurtosis_).tolist()), bool(model.certified_.all())
    ([-1.0, 1.0], True)
    """

    _noun = "source"

    def _store(self, learned: Learned, samples: int, like: Array = None) -> None:
        super()._store(learned, samples, like)
        unmixing, mixing, mean = self._linear
        self._put(like, components_=unmixing, mixing_=mixing, mean_=mean, whitening_=learned.frame.forward.T)

    @property
    def _linear(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What turns samples into sources and back: unmixing, mixing, mean; on the host."""
        kept = self.learned_
        mean = kept.mean if kept.overcomplete else kept.frame.mean
        return kept.unmixing / kept.spread[:, None], kept.components.T * kept.spread, mean

    @chunk_by_chunk("n_components_")
    def transform(self, X: Any) -> Array:
        """Sources ``(n_samples, n_components)``, of variance 1 on the samples of the fit.

        Where there are more sources than sensors, or a ``transform_algorithm`` was chosen, by sparse codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask array or dataframe

        Returns
        -------
        array of shape (n_samples, n_components)
            Of a Dask collection: a Dask array, computed later.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralICA().fit(data.samples)
        >>> np.var(model.transform(data.samples), axis=0).round(6).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
        """
        self._ready(X, "transform")
        if self.transform_algorithm is None and not self.learned_.overcomplete:
            unmixing, _, mean = self._linear
            return self._projected(X, mean, unmixing, None)
        codes = self._codes(X)
        return codes / from_numpy(self.learned_.spread, codes, codes.dtype)

    @chunk_by_chunk("n_features_in_")
    def inverse_transform(self, X: Any) -> Array:
        """Samples from sources: ``X @ mixing_.T + mean_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components), or Dask array

        Returns
        -------
        array of shape (n_samples, n_features)
            Of a Dask array: a Dask array, computed later.

        Examples
        --------
        >>> import numpy as np, quartic
        >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
        >>> model = quartic.SpectralICA().fit(data.samples)
        >>> sources = model.transform(data.samples)
        >>> sources[:, 0] = 0  # take one source out
        >>> model.inverse_transform(sources).shape
        (2000, 5)
        """
        self._ready(X, "inverse_transform")
        _, mixing, mean = self._linear
        return self._restored(X, mixing.T, mean)


def _plain(value: Any) -> Any:
    """A number of Python's own, for a file."""
    return value.item() if isinstance(value, np.generic) else value


def _known(components: Any, d: int) -> np.ndarray | None:
    """Known atoms as unit rows, or None where there are none; errors that name them."""
    try:
        known = np.asarray(to_numpy(components))
        real = known.dtype.kind in "biuf"
    except ValueError:
        known, real = np.empty(0), False
    if not real or known.ndim != 2 or known.shape[1] != d or not np.all(np.isfinite(known)):
        raise ValueError(f"known_components must hold finite real atoms as rows, shape (m, {d}).")
    norms = np.linalg.norm(known.astype(np.float64), axis=1, keepdims=True)
    if not np.all(norms > 0):
        raise ValueError("known_components must not hold zero rows.")
    if known.shape[0] == 0:
        return None
    rows = known / norms
    overlaps = np.abs(rows @ rows.T) - np.eye(rows.shape[0])
    if np.max(overlaps, initial=0.0) > 1 - 1e-6:
        i, j = np.unravel_index(int(np.argmax(overlaps)), overlaps.shape)
        raise ValueError(f"known_components holds one atom twice: rows {i} and {j}.")
    return rows


def _codes(groups: Any, X: Array) -> np.ndarray | None:
    return None if groups is None else codes_of(groups, X.shape[0])


def _weights(sample_weight: Any, X: Array) -> np.ndarray | None:
    if sample_weight is None:
        return None
    rows = np.empty((X.shape[0], 0))  # stands for X, which may be elsewhere: only its length counts
    given = to_numpy(sample_weight) if is_array_api_obj(sample_weight) else sample_weight
    w = _check_sample_weight(given, rows, dtype=np.float64, ensure_non_negative=True)
    if np.count_nonzero(w) < 2:
        raise ValueError("sample_weight must be positive for at least two samples.")
    return w
