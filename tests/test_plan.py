"""The plan of a fit: what was tried, in which order, what it proved, and that it is kept and printed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.decomposition import FastICA

import quartic
from quartic.algorithms.refine import contrast
from quartic.certify import Basis, Doubt, Proof, Reason
from quartic.datasets import nice_samples
from quartic.learn.attempts import Attempt, Plan, Proposer
from quartic.learn.plan import Spectral
from quartic.metrics import match
from quartic.report.findings import findings

QUIET = pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
ORDER = [proposer.value for proposer in Proposer]


def blocks(seed, m=6000):
    """Blocks of three atoms that occur together: no local method finds them."""
    options = {"supports": "blocks", "group": 3, "cooccurrence": 0.6, "dictionary": "orthonormal", "snr": 10}
    return nice_samples(m, 12, **options, random_state=seed).samples


def independent(seed, m=4000):
    return nice_samples(m, 8, coefficients="laplace", p=0.2, random_state=seed).samples


class TestAttempts:
    def test_what_proves_all_is_the_last(self, seed):
        model = quartic.SpectralDictionaryLearning(8, random_state=seed).fit(independent(seed))
        (only,) = model.report_.plan
        assert only.proposer == Proposer.FIXED_POINT.value
        assert (only.certified, only.atoms) == (8, 8)
        assert only.rows == 4000
        assert only.temperature == 0

    def test_the_cheapest_first_until_all_is_proven(self, seed):
        model = quartic.SpectralDictionaryLearning(12, random_state=seed).fit(blocks(seed))
        plan = model.report_.plan
        assert plan[0].proposer == Proposer.FIXED_POINT.value
        assert [attempt.certified == 12 for attempt in plan] == [False] * (len(plan) - 1) + [True]
        assert np.all(model.certified_)
        assert all(attempt.seconds > 0 for attempt in plan)
        assert sum(attempt.seconds for attempt in plan) <= sum(model.report_.timings.values())

    @QUIET
    def test_nothing_is_left_out_where_atoms_occur_together(self, seed):
        """Signals under one envelope, in directions that are no axes of theirs: all is tried, and nothing is proven."""
        rng = np.random.default_rng(seed)
        Y = rng.standard_normal((3000, 5)) * rng.exponential(size=(3000, 1))
        plan = quartic.SpectralDictionaryLearning(5, random_state=seed).fit(Y).report_.plan
        assert all(attempt.certified == 0 for attempt in plan)
        tried = [attempt.proposer for attempt in plan]
        assert tried[0] == Proposer.FIXED_POINT.value
        assert {Proposer.SPAN.value, Proposer.UNTANGLE.value} <= set(tried)
        # Weights first, and plain moments after all of them.
        weighted = [attempt.temperature > 0 for attempt in plan[1:]]
        assert weighted == sorted(weighted, reverse=True)
        assert weighted[0]
        assert not weighted[-1]

    @QUIET
    @pytest.mark.parametrize("law", ["standard_normal", "logistic"])
    def test_a_span_is_asked_only_where_atoms_occur_together(self, seed, law):
        """Of independent sources it proves no more than a fixed point does, and needs more samples."""
        Y = getattr(np.random.default_rng(seed), law)(size=(800, 6))
        (only,) = quartic.SpectralDictionaryLearning(6, random_state=seed).fit(Y).report_.plan
        assert only.proposer == Proposer.FIXED_POINT.value
        assert only.certified < 6

    def test_more_atoms_than_dimensions(self, seed):
        rng = np.random.default_rng(seed)
        S = rng.standard_normal((20_000, 16)) * (rng.random((20_000, 16)) < 0.06)
        model = quartic.SpectralDictionaryLearning(16, random_state=seed).fit(S @ rng.standard_normal((16, 8)))
        (only,) = model.report_.plan
        assert only.proposer == Proposer.BEYOND.value
        assert only.atoms == 16

    def test_more_atoms_than_dimensions_lose_against_a_complete_reading(self):
        """Blocks of three whose sums, 32 in 24 dimensions, are certified by spans, and no mirror is seen."""
        data = nice_samples(24_000, 24, supports="blocks", group=3, cooccurrence=0.6, random_state=0)
        model = quartic.SpectralDictionaryLearning(random_state=0).fit(data.samples)
        beyond = [attempt for attempt in model.report_.plan if attempt.proposer == Proposer.BEYOND.value]
        assert all(attempt.atoms > 24 for attempt in beyond)
        assert model.n_components_ == np.sum(model.certified_) == 24
        assert match(data.components, model.components_).found(0.99) == 24

    @QUIET
    @pytest.mark.parametrize("path", ["partial_fit", "moments"])
    def test_moments_alone(self, seed, path):
        model = quartic.SpectralDictionaryLearning(8, refine=path != "moments", random_state=seed)
        model.partial_fit(independent(seed)) if path == "partial_fit" else model.fit(independent(seed))
        plan = model.report_.plan
        assert plan[0].proposer == Proposer.SPAN.value
        assert {attempt.proposer for attempt in plan[1:]} <= {Proposer.WINDOW.value}
        assert max(attempt.certified for attempt in plan) >= np.sum(model.certified_)


class TestWhatIsKept:
    """Where little is certified: the axes that the proof speaks for, and otherwise those that local methods prefer."""

    @QUIET
    def test_axes_that_one_reading_is_left_for(self, seed):
        """Too few samples for certificates, and supports in which local methods find nothing: all atoms are found."""
        data = nice_samples(1500, 20, supports="blocks", group=5, cooccurrence=0.5, random_state=seed)
        model = quartic.SpectralDictionaryLearning(20, random_state=seed).fit(data.samples)
        assert np.sum(model.certified_) < 20
        assert match(data.components, model.components_).found(0.99) == 20

    def test_the_one_that_certifies_more_then_the_one_with_more_readings(self):
        def found(*reasons):
            doubts = tuple(reason and Doubt(reason) for reason in reasons)
            n, none = len(doubts), np.zeros((len(doubts),) * 2, dtype=bool)
            bounds = np.array([0.0 if doubt else 0.9 for doubt in doubts])
            proof = Proof(np.eye(n), bounds, doubts, (Basis.SIGNS,) * n, none)
            return Spectral(np.eye(n), (), proof, None, np.zeros(n), np.zeros(0), 0, "", "implicit")

        group = found(Reason.GROUP, Reason.UNSTABLE, Reason.INACCURATE)
        np.testing.assert_array_equal(group.proof.one_reading, [True, True, True])
        rival = found(Reason.RIVAL, Reason.ALIKE, Reason.GAUSSIAN)
        np.testing.assert_array_equal(rival.proof.one_reading, [False, False, False])
        one = found(None, Reason.NO_AXES, Reason.RIVAL)
        assert rival.better(group) is group
        assert group.better(rival) is group
        assert group.better(one) is one
        assert one.better(group) is one
        assert rival.better(found(Reason.RIVAL, Reason.NO_AXES, Reason.CONTRADICTED)) is rival  # the first

    @QUIET
    def test_where_nothing_is_proven_no_local_method_finds_better_axes(self, seed):
        """Signals under one envelope, as in patches of images: nothing is certified, and FastICA finds local optima."""
        rng = np.random.default_rng(seed)
        S = rng.laplace(size=(6000, 10)) * rng.exponential(size=(6000, 1))
        Y = S @ rng.standard_normal((10, 10))
        model = quartic.SpectralICA(10, random_state=seed).fit(Y)

        def least(sources):
            return contrast((sources - np.mean(sources, axis=0)) / np.std(sources, axis=0))

        peers = [FastICA(10, whiten="unit-variance", random_state=start).fit_transform(Y) for start in range(3)]
        assert least(model.transform(Y)) > 0.99 * max(map(least, peers))


class TestAsAValue:
    def test_times_are_those_since_the_last(self, monkeypatch):
        now = iter([0.0, 1.0, 3.5, 3.5, 10.0, 12.0, 12.0])
        monkeypatch.setattr("quartic.learn.attempts.time.perf_counter", lambda: next(now))
        plan = Plan()  # at 0
        plan.starts()  # at 1
        plan.made(Proposer.FIXED_POINT, 100, 0.0, 1, 2)
        plan.starts()
        plan.made(Proposer.SPAN, 100, 0.5, 2, 2)
        assert [attempt.seconds for attempt in plan.attempts] == [2.5, 2.0]

    def test_in_words(self):
        plain = Attempt("fixed point", 12_000, 0.0, 3, 4, 0.126)
        assert str(plain) == "fixed point, 12,000 samples: 3 of 4 certified in 0.13 s"
        weighted = Attempt("span of the moment", 12_000, 0.5, 3, 4, 0.126)
        assert str(weighted) == "span of the moment, 12,000 samples, temperature 0.5: 3 of 4 certified in 0.13 s"

    def test_is_kept_and_printed(self, seed, tmp_path):
        model = quartic.SpectralDictionaryLearning(8, random_state=seed).fit(independent(seed))
        model.save(tmp_path / "model.npz")
        again = quartic.SpectralDictionaryLearning.load(tmp_path / "model.npz")
        assert again.report_.plan == model.report_.plan
        assert str(model.report_.plan[0]) in str(model.report_)
        assert findings(model).facts["Try 1"] == str(model.report_.plan[0])

    def test_in_json(self, seed, tmp_path, capsys):
        from quartic.cli import main

        np.savetxt(tmp_path / "samples.csv", independent(seed, 1500), delimiter=",")
        assert main(["learn", str(tmp_path / "samples.csv"), "--components", "8", "--json"]) in (0, 1)
        told = json.loads(capsys.readouterr().out)["report"]["plan"]
        assert told[0]["proposer"] in ORDER
        assert set(told[0]) == {"proposer", "rows", "temperature", "certified", "atoms", "seconds"}

    def test_files_without_a_plan_are_read(self, seed, tmp_path):
        model = quartic.SpectralDictionaryLearning(8, random_state=seed).fit(independent(seed))
        model.save(tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as file:
            arrays = dict(file)
        text = json.loads(str(arrays["text"]))
        del text["report"]["plan"]
        np.savez(tmp_path / "old.npz", **{**arrays, "text": np.asarray(json.dumps(text))})
        assert quartic.SpectralDictionaryLearning.load(tmp_path / "old.npz").report_.plan == ()
