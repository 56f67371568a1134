"""What surrounds a fit: nothing is changed when it fails, and its stages are tasks of scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Whatever goes wrong inside leaves the estimator as it was."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


class Callbacks:
    """Stages of a fit as tasks of scikit-learn's callbacks, such as its ``ProgressBar``."""

    def __init__(self, estimator: CallbackSupportMixin, X: Any) -> None:
        self.estimator, self.X = estimator, X
        self.root = estimator._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(estimator=estimator, X=X)
        self.task: Any = None
        self.stage = ""

    def __call__(self, stage: str, done: int) -> None:
        if stage == self.stage:
            return
        self._end()
        self.stage = stage
        self.task = self.root.subcontext(task_name=stage)
        self.task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def _end(self) -> None:
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self.estimator, X=self.X)
            self.task = None

    def close(self) -> None:
        """The fit is done."""
        self._end()
        self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X)
