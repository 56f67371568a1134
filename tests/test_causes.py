"""Why a fit certifies what it certifies: every reason leads to a cause, and every cause says what to do."""

import math
import string

import numpy as np
import pytest

from quartic import SpectralDictionaryLearning, SpectralICA
from quartic.algorithms.certify import is_certified
from quartic.certify.doubts import Doubt, Reason
from quartic.evidence.lost import TENTH, Loss, Lost
from quartic.evidence.parts import Evidence
from quartic.evidence.units import GROUPS, STRETCHES, Kind, Units, rows_alone
from quartic.learn.causes import MANY, MORE, Cause, cause_of, of_features, of_rows, rounded, say, status_of

pytestmark = pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")

M, R = 400, 4
DO = (
    "accumulate", "ask", "collect", "compare", "denoise", "learn", "leave", "look", "record", "store", "subtract",
    "take", "transpose", "use",
)  # fmt: skip
OF_EVIDENCE = {Reason.SERIAL: Cause.SERIAL, Reason.LOST: Cause.ROUNDED}
CAUSE_OF = {
    Reason.NO_SAMPLES: Cause.NO_SAMPLES, Reason.FEW_SAMPLES: Cause.FEW_ROWS, Reason.ALIKE: Cause.NO_AXES,
    Reason.RIVAL: Cause.TWO_READINGS, Reason.GROUP: Cause.TWO_READINGS, Reason.CONTRADICTED: Cause.TWO_READINGS,
    Reason.GAUSSIAN: Cause.GAUSSIAN, Reason.NO_AXES: Cause.GAUSSIAN, Reason.UNSTABLE: Cause.NOT_PROVEN,
    Reason.INACCURATE: Cause.NOT_PROVEN,
}  # fmt: skip


def figures_of(cause):
    """Names in the templates of a cause."""
    _, _, happened, remedy = cause.value
    return {name for text in (happened, remedy) for _, name, _, _ in string.Formatter().parse(text) if name}


def evidence_of(*, rows=M, units=None, copies=1.0, lost=None, seed=0, dim=R, skewed=False):
    """Laplace signals that are independent; or exponential ones."""
    rng = np.random.default_rng(seed)
    Z = rng.exponential(size=(rows, dim)) - 1 if skewed else rng.laplace(size=(rows, dim)) / np.sqrt(2)
    index = np.arange(rows)
    units = rows_alone(index) if units is None else units
    return Evidence(Z, units, np.ones(rows), rows, copies, Lost.nothing() if lost is None else lost, index)


def stretches(count, length=20):
    of = np.arange(M) // length
    return Units(Kind.STRETCHES, of, of % 2, of % 3 == 0, count, STRETCHES, length, 5.0, 10.0)


def groups(count):
    of = np.arange(M) * count // M
    return Units(Kind.GROUPS, of, of % 2, of % 3 == 0, count, GROUPS)


def loss(kind, shares):
    """Of features that are the whitened signals."""
    shares = np.asarray(shares, dtype=float)
    kinds = tuple(kind if share > 0 else None for share in shares)
    return Lost(kinds, shares, np.diag(np.sqrt(shares)))


def status(doubts, *, evidence=None, stability=None, bounds=None, **options):
    """Of one atom for each doubt, along the axes; those without one are certified."""
    evidence = evidence_of() if evidence is None else evidence
    n = len(doubts)
    U = np.eye(max(n, R))[:n, :R] if n <= R else np.resize(np.eye(R), (n, R))
    certificates = np.array([0.9 if doubt is None else 0.0 for doubt in doubts]) if bounds is None else bounds
    stability = np.zeros(n) if stability is None else np.asarray(stability)
    given = {"rows": M, "features": R, "dim": R, "trimmed": 0} | options
    return status_of(U, certificates, doubts, stability, evidence, **given)


def spoiled(reason):
    """Evidence that a reason comes with."""
    if reason is Reason.SERIAL:
        return evidence_of(units=stretches(8))
    if reason is Reason.LOST:
        return evidence_of(lost=loss(Loss.ROUNDED, [0.3] * R))
    if reason is Reason.NO_SAMPLES:
        return evidence_of(rows=0)
    return evidence_of(rows=10) if reason is Reason.FEW_SAMPLES else evidence_of()


def main(found):
    return next(cause for cause in Cause if cause.code == found.code)


class TestCauses:
    def test_have_codes_of_their_own(self):
        codes = [cause.code for cause in Cause]
        assert len(set(codes)) == len(codes)
        for code in codes:
            assert code
            assert set(code) <= set(string.ascii_lowercase + "-")
            assert code.strip("-") == code
        assert "complete" not in codes

    @pytest.mark.parametrize("cause", Cause)
    def test_have_titles(self, cause):
        assert cause.title[0].isupper()
        assert cause.title[-1] not in string.punctuation
        assert len(cause.title) <= 50
        assert len({other.title for other in Cause}) == len(Cause)

    @pytest.mark.parametrize("cause", Cause)
    def test_say_what_happened_and_what_to_do(self, cause):
        said = say(cause, **dict.fromkeys(figures_of(cause), 3))
        for text in (said.happened, said.remedy):
            assert text[0].isupper() or text[0] == "3"
            assert text[-1] == "."
            assert not set("{}") & set(text)
            assert "  " not in text
        words = {word.strip(string.punctuation).lower() for word in said.remedy.split()}
        assert words & set(DO)
        assert said.cause is cause
        assert not said.grave

    def test_need_all_of_their_figures(self):
        for cause in Cause:
            for name in figures_of(cause):
                with pytest.raises(KeyError, match=name):
                    say(cause, **dict.fromkeys(figures_of(cause) - {name}, 3))


class TestReasons:
    @pytest.mark.parametrize("reason", Reason)
    @pytest.mark.parametrize("certified", [0, 1])
    def test_lead_to_a_cause(self, reason, certified):
        found = status([None] * certified + [Doubt(reason)] * (R - certified), evidence=spoiled(reason))
        expected = OF_EVIDENCE.get(reason) or CAUSE_OF[reason]
        if expected is Cause.GAUSSIAN and not certified:
            expected = Cause.NO_STRUCTURE
        assert main(found) is expected
        assert found.causes == (expected.code,)
        assert found.remedy.endswith(f" {MORE}")
        assert found.message.startswith(f"{certified} of {R} atoms certified.")
        assert not found.ok

    def test_are_all_known(self):
        assert set(CAUSE_OF) | set(OF_EVIDENCE) == set(Reason)

    @pytest.mark.parametrize("reason", list(CAUSE_OF))
    def test_that_a_few_more_rows_would_settle_are_too_few_rows(self, reason):
        ratio = math.sqrt(MANY) * 0.99
        found, needed = {
            Reason.GAUSSIAN: (1.0, ratio), Reason.NO_AXES: (1.0, ratio), Reason.UNSTABLE: (ratio, 1.0),
            Reason.INACCURATE: (math.cos(0.5 * ratio) ** 2, math.cos(0.5) ** 2),
        }.get(reason, (0.2, 0.1))  # fmt: skip
        settled = Doubt(reason, found=found, needed=needed)
        if reason in (Reason.GAUSSIAN, Reason.NO_AXES, Reason.UNSTABLE, Reason.INACCURATE):
            assert settled.times_as_many < MANY
            assert cause_of(settled, skewed=False) is Cause.FEW_ROWS
            assert "few-samples" in status([settled] * R).causes
        else:
            assert cause_of(settled, skewed=False) is CAUSE_OF[reason]

    def test_how_many_rows_is_said_to_two_digits(self):
        found = status([Doubt(Reason.GAUSSIAN, found=1.0, needed=math.sqrt(1.5))] * R, rows=12_345, features=R)
        assert found.code == "few-samples"
        assert "12,345" in found.message
        assert "19,000" in found.message
        assert "19,000" in found.remedy
        assert [rounded(x) for x in (18_517.5, 1.0, 999.0, 123_456.0)] == [19_000, 1, 1000, 120_000]

    def test_of_most_atoms_come_first(self):
        rival, gaussian = Doubt(Reason.RIVAL, other=0), Doubt(Reason.GAUSSIAN)
        assert status([None, rival, rival, gaussian]).causes == ("two-readings", "gaussian")
        assert status([None, rival, gaussian, gaussian]).causes == ("gaussian", "two-readings")
        assert status([None, rival, rival, gaussian]).code == "two-readings"
        assert status([rival, gaussian, gaussian, gaussian]).code == "no-structure"

    def test_of_skewed_signals_differ(self):
        doubts = [None, Doubt(Reason.RIVAL, other=2), Doubt(Reason.GROUP, other=1), Doubt(Reason.CONTRADICTED)]
        assert status(doubts, evidence=evidence_of(skewed=True, rows=10 * M)).code == "skewed"
        assert status(doubts).code == "two-readings"
        assert cause_of(Doubt(Reason.ALIKE), skewed=True) is Cause.NO_AXES

    def test_of_more_atoms_than_dimensions_that_are_certified_are_one(self):
        found = status([None] * R + [Doubt(Reason.GAUSSIAN), Doubt(Reason.RIVAL)])
        assert found.causes == ("more-than-dimensions",)
        assert f"ask for {R}" in found.remedy


class TestStatus:
    def test_complete_has_no_remedy(self):
        for evidence in (evidence_of(), evidence_of(units=stretches(100)), evidence_of(copies=3.0)):
            found = status([None] * R, evidence=evidence)
            assert found.ok
            assert found.code == "complete"
            assert found.remedy == ""
            assert found.message.startswith(f"{R} atoms found and certified.")
        assert status([None] * R).causes == ()

    def test_of_one_certified_atom_is_complete(self):
        assert status([None]).message == "1 atom found and certified."

    @pytest.mark.parametrize("reason", Reason)
    @pytest.mark.parametrize("certified", range(R))
    def test_is_complete_only_if_all_atoms_are_certified(self, reason, certified):
        found = status([None] * certified + [Doubt(reason)] * (R - certified), evidence=spoiled(reason))
        assert not found.ok
        assert found.remedy
        assert found.code in found.causes

    def test_says_what_certificates_rest_on(self):
        found = status([None] * R, evidence=evidence_of(units=stretches(100), copies=2.5, lost=loss(None, [0] * R)))
        assert found.causes == ("serial", "repeated-rows")
        assert "100 stretches of 20 rows" in found.message
        assert "2.5" in found.message

    @pytest.mark.parametrize("certified", [0, 1, 2, 3])
    def test_says_how_many_return_where_fewer_than_half_are_certified(self, certified):
        doubts = [None] * certified + [Doubt(Reason.GAUSSIAN)] * (R - certified)
        found = status(doubts, stability=[0.99, 0.95, 0.2, 0.0])
        assert (f"2 of {R} return in both halves of the samples." in found.message) is (2 * certified < R)

    def test_does_not_where_halves_depend_on_each_other(self):
        found = status([Doubt(Reason.SERIAL)] * R, evidence=evidence_of(units=stretches(8)), stability=[1.0] * R)
        assert "return" not in found.message

    def test_counts_what_was_left_out(self):
        assert "left out" not in status([None] * R).message
        assert "1 sample was left out" in status([None] * R, trimmed=1).message
        assert "3 samples were left out" in status([None] * R, trimmed=3).message

    def test_speaks_of_one_atom_and_of_several(self):
        for reason in (Reason.RIVAL, Reason.ALIKE, Reason.GAUSSIAN):
            doubt = Doubt(reason)
            assert status([None, None, doubt, None]).message.count("atom 2.") == 1
            assert status([doubt, None, None, doubt]).message.count("atoms 0, 3.") == 1

    def test_names_few_of_many_atoms(self):
        many = [None, *[Doubt(Reason.RIVAL)] * 11]
        evidence = evidence_of(dim=12)
        found = status_of(
            np.eye(12), np.array([0.9] + [0.0] * 11), many, np.zeros(12), evidence,
            rows=M, features=12, dim=12, trimmed=0,
        )  # fmt: skip
        assert "atoms 1, 2, 3, 4, 5, 6, 7, 8, ...." in found.message

    def test_speaks_of_one_component_and_of_several(self):
        assert "Ask for 1 component." in status([None, *[Doubt(Reason.GAUSSIAN)] * 3]).remedy
        assert "Ask for 3 components." in status([None, None, None, Doubt(Reason.GAUSSIAN)]).remedy

    def test_speaks_of_sources_where_they_are_called_so(self, rng):
        message = SpectralICA().fit(rng.laplace(size=(2000, 3))).status_.message
        assert "atom" not in message
        assert "source" in message

    @pytest.mark.parametrize("certified", [0, 2])
    def test_of_rows_that_change_on_the_way(self, certified):
        evidence = evidence_of()
        evidence.Z[: M // 2] *= 10.0
        found = status([None] * certified + [Doubt(Reason.RIVAL)] * (R - certified), evidence=evidence)
        assert found.code == "not-stationary"
        assert "two-readings" in found.causes
        assert "not-stationary" not in status([None] * R, evidence=evidence).causes

    def test_of_fewer_rows_than_columns(self):
        found = status([Doubt(Reason.FEW_SAMPLES)] * R, evidence=evidence_of(rows=3), rows=3, features=10, dim=2)
        assert found.code == "transposed"
        assert "3 and 10" in found.message

    def test_of_features_that_are_sums_of_others(self):
        for doubt in (None, Doubt(Reason.GAUSSIAN)):
            found = status([doubt] * R, features=6, dim=R)
            assert "condition" in found.causes
            assert f"{R} directions only, of 6" in found.message
        assert "condition" not in status([None] * R, features=R, dim=R).causes


class TestRowsAndFeatures:
    def test_too_few_stretches_or_groups_are_grave(self):
        for units, cause in ((stretches(8), Cause.SERIAL), (groups(4), Cause.GROUPS)):
            assert not units.enough
            (said,) = of_rows(evidence_of(units=units), M, R)
            assert (said.cause, said.grave) == (cause, True)
            assert str(units.needed) in said.happened
        (said,) = of_rows(evidence_of(units=stretches(100)), M, R)
        assert (said.cause, said.grave) == (Cause.SERIAL, False)
        assert of_rows(evidence_of(units=groups(20)), M, R) == []
        assert of_rows(evidence_of(), M, R) == []

    @pytest.mark.parametrize("kind", Loss)
    def test_more_than_a_tenth_is_grave(self, kind):
        cause = next(cause for cause in Cause if cause.name == kind.name)
        for share, grave in ((TENTH * 1.01, True), (TENTH * 0.99, False)):
            (said,) = of_features(evidence_of(lost=loss(kind, [0.0, share, 0.0, 0.0])), np.eye(R))
            assert (said.cause, said.grave) == (cause, grave)
        assert of_features(evidence_of(lost=loss(kind, [1e-5] * R)), np.eye(R)) == []

    def test_features_are_named(self):
        for shares, expected in (
            ([0.0, 0.2, 0.0, 0.0], "Feature 1 has "),
            ([0.2, 0.0, 0.2, 0.0], "Features 0, 2 have "),
            ([0.2] * R, f"All {R} features have "),
        ):
            (said,) = of_features(evidence_of(lost=loss(Loss.FILLED, shares)), np.eye(R))
            assert said.happened.startswith(expected)
        many = evidence_of(lost=loss(Loss.CLIPPED, [0.0, *[0.2] * 11]), dim=12)
        (said,) = of_features(many, np.eye(12))
        assert said.happened.startswith("Features 1, 2, 3, 4, 5, 6, 7, 8, ... have ")

    def test_the_loss_that_most_of_it_comes_from_is_named(self):
        shares = np.array([0.05, 0.05, 0.3, 0.0])
        lost = Lost((Loss.ROUNDED, Loss.ROUNDED, Loss.CLIPPED, None), shares, np.diag(np.sqrt(shares)))
        (said,) = of_features(evidence_of(lost=lost), np.eye(R))
        assert said.cause is Cause.CLIPPED
        assert "Feature 2 has" in said.happened
        (said,) = of_features(evidence_of(lost=lost), np.eye(R)[:2])
        assert said.cause is Cause.ROUNDED
        assert "Features 0, 1 have" in said.happened

    def test_a_gross_sensor_is_named(self):
        lost = Lost((None,) * R, np.zeros(R), np.zeros((R, R)), gross=2)
        (said,) = of_features(evidence_of(lost=lost), np.eye(R))
        assert said.cause is Cause.GROSS
        assert "Feature 2 " in said.happened

    @pytest.mark.parametrize("certified", [0, 1, 3])
    @pytest.mark.parametrize("kind", Loss)
    def test_what_is_mild_is_not_the_main_cause(self, certified, kind):
        evidence = evidence_of(lost=loss(kind, [0.9 * TENTH] * R))
        for reason, cause in CAUSE_OF.items():
            if reason is not Reason.NO_SAMPLES:
                found = status([None] * certified + [Doubt(reason)] * (R - certified), evidence=evidence)
                assert main(found) in (cause, Cause.NO_STRUCTURE if cause is Cause.GAUSSIAN else cause)
                assert kind.name.lower() in found.causes

    @pytest.mark.parametrize("reason", [Reason.RIVAL, Reason.GAUSSIAN, Reason.INACCURATE])
    def test_copies_are_not_the_main_cause_where_atoms_are_certified(self, reason):
        found = status([None, *[Doubt(reason)] * 3], evidence=evidence_of(copies=1.02))
        assert main(found) is CAUSE_OF[reason]
        assert "repeated-rows" in found.causes

    def test_what_is_grave_is(self):
        gaussian = [None, *[Doubt(Reason.GAUSSIAN)] * 3]
        lost = status(gaussian, evidence=evidence_of(lost=loss(Loss.FILLED, [0.0, 0.5, 0.5, 0.5])))
        serial = status(gaussian, evidence=evidence_of(units=stretches(8)))
        assert (lost.code, serial.code) == ("filled", "serial")
        assert lost.causes == ("filled", "gaussian")
        assert serial.causes == ("serial", "gaussian")


class TestTimesAsMany:
    def test_nothing_found_is_never_settled(self):
        for reason in Reason:
            assert Doubt(reason).times_as_many == math.inf
            assert Doubt(reason, found=0.0, needed=4.0).times_as_many == math.inf
            assert Doubt(reason, found=4.0, needed=0.0).times_as_many == math.inf

    def test_standard_errors_grow_with_the_root(self):
        for reason in (Reason.GAUSSIAN, Reason.NO_AXES):
            assert Doubt(reason, found=2.0, needed=4.0).times_as_many == 4.0
            assert Doubt(reason, found=4.0, needed=4.0).times_as_many == 1.0

    def test_angles_shrink_with_the_root(self):
        assert Doubt(Reason.UNSTABLE, found=0.6, needed=0.3).times_as_many == pytest.approx(4.0)
        for angle in (0.9, 1.2, 1.5):
            doubt = Doubt(Reason.INACCURATE, found=math.cos(angle) ** 2, needed=math.cos(0.5) ** 2)
            assert doubt.times_as_many == pytest.approx((angle / 0.5) ** 2)
        assert Doubt(Reason.INACCURATE, found=0.5, needed=0.5).times_as_many == pytest.approx(1.0)

    def test_other_reasons_are_not_for_want_of_rows(self):
        for reason in set(Reason) - {Reason.GAUSSIAN, Reason.NO_AXES, Reason.UNSTABLE, Reason.INACCURATE}:
            assert Doubt(reason, found=0.2, needed=0.1).times_as_many == math.inf


def fitted(Y, seed, **parameters):
    return SpectralDictionaryLearning(random_state=seed, **parameters).fit(Y)


class TestFits:
    @pytest.mark.parametrize(("step", "refine"), [(0.2, True), (0.5, False)])
    def test_of_rounded_gaussian_noise_blame_the_noise(self, seed, step, refine):
        rng = np.random.default_rng([seed, 2])
        model = fitted(np.round(rng.standard_normal((1500, 4)) / step) * step, seed, refine=refine)
        assert not np.any(model.certified_)
        assert model.status_.code in ("no-structure", "few-samples", "gaussian")
        assert "rounded" in model.status_.causes
        assert "of 4 return in both halves of the samples." in model.status_.message

    def test_of_gaussian_noise_name_nothing_else(self, seed):
        rng = np.random.default_rng([seed, 3])
        model = fitted(rng.standard_normal((2000, 4)), seed, refine=False)
        assert not np.any(model.certified_)
        assert set(model.status_.causes) <= {"no-structure", "few-samples", "gaussian", "no-axes", "not-proven"}

    def test_of_a_gaussian_source_among_others_name_it(self, seed):
        rng = np.random.default_rng([seed, 4])
        S = np.append(rng.laplace(size=(8000, 3)) / np.sqrt(2), rng.standard_normal((8000, 1)), axis=1)
        model = fitted(S @ np.linalg.qr(rng.standard_normal((4, 4)))[0], seed, n_components=4)
        assert np.sum(model.certified_) <= 3
        if np.sum(model.certified_) == 3:
            (place,) = np.flatnonzero(~model.certified_)
            assert model.status_.code in ("gaussian", "few-samples")
            assert f"atom {place}" in model.status_.message

    def test_of_what_is_certified_are_complete(self, seed):
        rng = np.random.default_rng([seed, 5])
        S = rng.standard_normal((5000, 4)) * (rng.random((5000, 4)) < 0.2)
        for parameters in ({}, {"n_components": 4}, {"refine": False}):
            model = fitted(S @ rng.standard_normal((4, 4)), seed, **parameters)
            assert model.status_.ok is bool(np.all(is_certified(model.certificates_)))
            assert model.status_.ok is (model.status_.remedy == "")

    def test_of_five_groups_ask_for_more(self, seed):
        rng = np.random.default_rng([seed, 6])
        model = SpectralDictionaryLearning().fit(rng.laplace(size=(2000, 3)), groups=np.arange(2000) % 5)
        assert model.status_.code == "few-groups"
        assert "5 groups of rows" in model.status_.message

    def test_of_copies_say_so(self, seed):
        rng = np.random.default_rng([seed, 7])
        model = fitted(np.repeat(rng.laplace(size=(2000, 3)), 4, axis=0), seed)
        assert "repeated-rows" in model.status_.causes

    def test_of_fewer_rows_than_columns_ask_for_the_transpose(self, seed):
        rng = np.random.default_rng([seed, 8])
        model = fitted(rng.laplace(size=(12, 40)), seed)
        assert model.status_.code == "transposed"
        assert not np.any(model.certified_)
