"""Diagnosis: each finding on samples that break its assumption, and on samples that do not."""

import json
import re
import warnings

import numpy as np
import pytest
from scipy.signal import lfilter

import quartic
from quartic.algorithms.assume import changes, neighbours, often, skewness, spaced, tied, uniformity
from quartic.datasets import COEFFICIENTS, SUPPORTS, nice_samples
from quartic.diagnosis import diagnose
from quartic.rows import looked_at

M, D = 2000, 8
MODELS = {"dictionary": quartic.SpectralDictionaryLearning, "ica": quartic.SpectralICA}


def good(seed, **options):
    return nice_samples(M, D, random_state=seed, **options)


def mixed(codes, rng):
    return codes @ rng.standard_normal((codes.shape[1], codes.shape[1]))


def elliptical(rng):
    return mixed(rng.standard_normal((M, D)) / np.sqrt(rng.chisquare(3, (M, 1)) / 3), rng)


# Nothing is named where nothing is wrong


@pytest.mark.parametrize("supports", SUPPORTS)
@pytest.mark.parametrize("coefficients", COEFFICIENTS)
def test_good_samples(supports, coefficients, seed):
    noise = {"snr": 10.0, "dictionary": "orthonormal"} if seed % 2 else {}
    data = good(seed, supports=supports, coefficients=coefficients, **noise)
    found = diagnose(data.samples, random_state=seed)
    assert found.ok, found
    assert found.doubtful or "Nothing speaks against" in found.summary()
    assert all(finding.holds and finding.measured for finding in found.findings)


@pytest.mark.parametrize("draw", ["uniform", "laplace"])
def test_independent_components_without_zeros_are_good(draw, rng):
    assert diagnose(mixed(getattr(rng, draw)(size=(M, D)), rng)).ok


def test_more_atoms_than_dimensions_are_good(seed):
    data = nice_samples(8000, 12, 8, p=0.08, random_state=seed)
    assert diagnose(data.samples).ok
    found = diagnose(data.samples, n_components=12)
    assert found.ok
    assert "more atoms than dimensions" in found["together"].measured
    assert found["samples"].limit > diagnose(data.samples)["samples"].limit


# What is wrong is named


BROKEN = {
    "samples": lambda rng: nice_samples(4 * 16, 16, random_state=rng).samples,
    "structure": lambda rng: mixed(rng.standard_normal((M, D)), rng),
    "outliers": lambda rng: nice_samples(M, D, outliers=0.02, random_state=rng).samples,
    "condition": lambda rng: nice_samples(M, D, condition=1e9, random_state=rng).samples,
    "symmetry": lambda rng: mixed(np.abs(good(rng, coefficients="gaussian").codes), rng),
    "together": lambda rng: mixed(
        np.repeat(rng.random((3000, 2)) < 0.1, 4, axis=1) * rng.standard_normal((3000, D)), rng
    ),
    "serial": lambda rng: mixed(lfilter([1.0], [1.0, -0.999], rng.laplace(size=(M, D)), axis=0), rng),
    "lost": lambda rng: np.clip(rng.laplace(size=(M, D)), -1, 1),
    "stationary": lambda rng: np.concatenate([good(rng, dictionary="orthonormal").samples for _ in range(2)]),
}


@pytest.mark.parametrize("code", BROKEN)
def test_the_broken_assumption_is_named_and_no_other(code, rng):
    found = diagnose(BROKEN[code](rng))
    assert found.broken == [code], found
    assert not found.ok
    assert not found[code].holds
    assert found[code].remedy
    # Every limit says on which side to be.
    for finding in found.findings:
        assert "limit" not in finding.measured
        if finding.code not in ("finite", "features"):
            assert re.search(r"(must|should) be at (most|least) \d|^not looked at: |^no ", finding.measured), finding


def test_heavy_tails_without_structure(rng):
    assert diagnose(elliptical(rng)).broken == ["structure"]


def test_what_makes_doubtful_and_is_no_obstacle(seed, rng):
    Y = good(seed).samples
    constant, copied = (np.column_stack((Y, column)) for column in (np.full(M, 3.0), 2 - Y[:, 1]))
    for X in (constant, copied):
        found = diagnose(X)
        assert found.ok
        assert f"({D})" in found["features"].measured
        assert "features" in found.doubtful
    assert "outliers" in diagnose(good(seed, outliers=0.001).samples).doubtful
    few = diagnose(nice_samples(600, 24, random_state=seed).samples)
    assert (few.ok, "samples" in few.doubtful) == (True, True)
    codes = np.column_stack((good(seed).codes[:, :5], rng.standard_normal((M, 3))))
    assert diagnose(mixed(codes, rng)).doubtful == ["directions"]
    heavy = rng.laplace(size=(M, D))
    heavy[:4] *= 5 * np.quantile(np.linalg.norm(heavy, axis=1), 0.995) / np.linalg.norm(heavy[:4], axis=1)[:, None]
    assert diagnose(rng.permutation(heavy)).doubtful == ["tails"]
    tied = nice_samples(2 * M, D, supports="blocks", group=4, cooccurrence=0.5, random_state=seed)
    assert diagnose(tied.samples).doubtful == ["together"]
    follow = diagnose(mixed(lfilter([1.0], [1.0, -0.9], rng.laplace(size=(8 * M, D)), axis=0), rng))
    assert (follow.ok, "serial" in follow.doubtful) == (True, True)
    assert "independent stretches of rows" in follow["serial"].measured
    assert diagnose(np.cumsum(rng.laplace(size=(M, D)), axis=0), rows="exchangeable")["serial"].level == "ok"
    assert "repeated-rows" in diagnose(np.repeat(good(seed).samples, 3, axis=0)).doubtful


def test_rows_and_features_are_told_as_a_fit_tells_them(rng):
    """The same tests, in the same words: a remedy of one is never another of the other."""
    walk = np.cumsum(rng.laplace(size=(M, D)), axis=0)
    Y = mixed(rng.laplace(size=(M, D)), rng)
    for X, code, cause in (
        (walk, "serial", "serial"),
        (np.repeat(Y[:500], 4, axis=0), "repeated-rows", "repeated-rows"),
        (np.round(Y / Y.std(axis=0)) * Y.std(axis=0), "lost", "rounded"),
        (np.clip(Y, *np.quantile(Y, (0.1, 0.9), axis=0)), "lost", "clipped"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = quartic.SpectralDictionaryLearning(random_state=0).fit(X).status_
        found = diagnose(X)[code]
        assert cause in status.causes
        assert found.level != "ok"
        if status.code == cause:
            assert found.remedy in status.remedy


@pytest.mark.parametrize("radius", ["circle", "disc", "heavy"])
def test_planes_without_axes(radius, rng):
    x = rng.standard_normal((M, 2))
    size = {"circle": 1.0, "disc": np.sqrt(rng.random((M, 1))), "heavy": rng.exponential(size=(M, 1))}[radius]
    plane = x / np.linalg.norm(x, axis=1, keepdims=True) * size
    found = diagnose(mixed(np.column_stack((plane / np.std(plane, axis=0), rng.laplace(size=(M, D - 2)))), rng))
    assert "axes" in found.doubtful
    assert found["axes"].measured.startswith(f"2 of {D} directions lie in planes")


def test_groups_with_two_readings(rng):
    """Two that hardly ever occur alone: few samples tell them from their sum and difference."""
    m = 6000
    active = np.repeat(rng.random((m, 3)) < 0.1, 2, axis=1) & (rng.random((m, 6)) < 0.95)
    found = diagnose(mixed(active * rng.uniform(0.5, 1.5, (m, 6)) * rng.choice([-1, 1], (m, 6)), rng))
    assert found["axes"].level == "doubtful"
    assert "in groups with two readings" in found["axes"].measured
    assert not diagnose(mixed(rng.laplace(size=(M, D)), rng))["axes"].value


def test_noise_is_measured_where_a_floor_shows_it(seed):
    def ratio(snr):
        data = nice_samples(M, 3, 12, snr=snr, dictionary="orthonormal", random_state=seed)
        return diagnose(data.samples)["noise"]

    # All of the signal is in 3 of the 12 directions: four times the ratio there.
    assert ratio(10.0).value == pytest.approx(10 + 10 * np.log10(4), abs=1)
    assert ratio(10.0).level == "ok"
    assert ratio(-3.0).level == "doubtful"
    assert np.isnan(diagnose(good(seed).samples)["noise"].value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value, seed):
    Y = good(seed).samples
    Y[5, 2] = value
    found = diagnose(Y)
    assert found.broken == ["finite"]
    said = f"1 of {M} samples holds values that are not finite; the first, counted from 0: row 5 in feature 2"
    assert found["finite"].measured == said
    assert found.looked == M - 1
    assert diagnose(np.full((4, 2), value)).broken == ["finite", "samples"]


def test_the_first_values_that_are_not_finite_are_named():
    Y = np.ones((50, 3))
    Y[[40, 7, 41, 49], [0, 2, 1, 0]] = np.nan
    said = diagnose(Y, feature_names=["a", "b", "c"])["finite"].measured
    assert said.startswith("4 of 50 samples hold values")
    assert said.endswith(": row 7 in feature c, row 40 in feature a, row 41 in feature b")


def test_degenerate_samples():
    assert diagnose(np.zeros((5, 3))).broken == ["features"]
    assert diagnose(np.zeros((0, 3))).broken == ["samples"]
    assert diagnose(np.ones((1, 3))).broken == ["samples"]
    assert diagnose(1e200 * good(0).samples).broken == ["magnitude"]
    assert "samples" in diagnose(np.random.default_rng(0).standard_normal((6, 30))).broken
    assert diagnose(np.random.default_rng(0).laplace(size=(M, 1))).ok


@pytest.mark.parametrize(("Y", "said"), [(np.zeros(4), "shape"), (np.zeros((4, 2), dtype=complex), "complex128")])
def test_no_samples_are_refused(Y, said):
    with pytest.raises(ValueError, match=said):
        diagnose(Y)


def test_whole_numbers_and_other_precisions(seed):
    Y = good(seed).samples
    assert diagnose(np.round(1000 * Y).astype(int)).ok
    assert diagnose(Y.astype(np.float32)).ok
    limits = [diagnose(X)["condition"].limit for X in (Y, Y.astype(np.float32))]
    assert limits[0] > 5 * limits[1]


def test_other_libraries(xp):
    Y = good(0).samples
    assert diagnose(xp.asarray(Y)).as_dict()["findings"] == diagnose(Y).as_dict()["findings"]


def test_large_samples_are_looked_at_in_runs(seed):
    Y = np.arange(100_000.0)[:, None] * np.ones(2)
    index = looked_at(Y).index
    assert index.shape[0] == 1 << 14
    assert (index[0], index[-1]) == (0, 99_999)
    assert np.mean(np.diff(index) == 1) > 0.99


def test_dask_collections(seed):
    da = pytest.importorskip("dask.array")
    data = nice_samples(M, D, random_state=seed, outliers=0.02)
    found = diagnose(da.from_array(data.samples, chunks=(700, D)))
    assert found.broken == ["outliers"]
    assert found.samples == M
    assert found["outliers"].value == diagnose(data.samples)["outliers"].value


# More outliers than the longest of all samples would show


def with_outliers(share, seed):
    rng = np.random.default_rng(seed)
    Y = mixed(rng.laplace(size=(2 * M, D)) * (rng.random((2 * M, D)) < 0.3), rng)
    gross = rng.permutation(2 * M)[: int(share * 2 * M)]
    Y[gross] += 100 * rng.standard_normal((gross.shape[0], D))
    return Y, gross


@pytest.mark.parametrize("share", [0.01, 0.02, 0.05])
def test_many_outliers_are_named_and_nothing_that_they_bring_about(share, seed):
    Y, gross = with_outliers(share, seed)
    found = diagnose(Y)
    assert found.broken == ["outliers"], found
    assert found["outliers"].value == gross.shape[0] / (2 * M)
    assert "Remove them" in found["outliers"].remedy


@pytest.mark.parametrize("coefficients", COEFFICIENTS)
def test_few_samples_with_active_atoms_are_no_outliers(coefficients, seed):
    for noise in ({}, {"snr": 20.0, "dictionary": "orthonormal"}):
        data = nice_samples(4 * M, D, p=0.01, coefficients=coefficients, random_state=seed, **noise)
        assert looked_at(data.samples).gross == 0


def test_a_rare_source_is_no_outlier(rng):
    codes = rng.uniform(-1, 1, (2 * M, 4))
    codes[:, 0] = rng.choice([-6, 6], 2 * M) * (rng.random(2 * M) < 0.02)
    rows = looked_at(codes @ np.linalg.qr(rng.standard_normal((4, 4)))[0])
    assert rows.gross == 0


# Shapes and names


def test_fewer_rows_than_columns_are_asked_about(rng):
    found = diagnose(rng.laplace(size=(12, 200)))
    assert found.broken == ["samples"]
    asked = "Are the samples in columns (12 rows, 200 columns)? Then transpose them, with .T in NumPy or pandas. More"
    assert found["samples"].remedy.startswith(asked)
    assert "in columns (1 row, 200 columns)?" in diagnose(np.ones((1, 200)))["samples"].remedy
    assert "in columns" not in diagnose(rng.laplace(size=(40, 16)))["samples"].remedy


def test_what_few_rows_can_not_tell_is_not_looked_at(rng):
    found = diagnose(np.cumsum(rng.standard_normal((12, 6)), axis=0))
    for code in ("structure", "directions", "symmetry", "together", "serial", "stationary", "tails"):
        assert found[code].measured.startswith("not looked at: "), found[code]
        assert np.isnan(found[code].value)
    assert found["serial"].measured.endswith("11 pairs of rows that follow each other, at least 100 can tell")
    assert not np.isnan(diagnose(rng.laplace(size=(101, 6)))["serial"].value)


@pytest.mark.parametrize("n", [0, D * (D + 1) // 2 + 1])
def test_numbers_of_atoms_that_a_fit_refuses_are_refused(n):
    Y = good(0).samples
    with pytest.raises(ValueError, match=f"n_components must lie between 1 and 36, .* got {n}") as refused:
        diagnose(Y, n_components=n)
    with pytest.raises(ValueError, match=re.escape(str(refused.value))):
        quartic.SpectralDictionaryLearning(n).fit(Y)


def test_features_have_names(seed):
    pd = pytest.importorskip("pandas")
    Y = good(seed).samples
    Y = np.column_stack((Y, np.full(M, 3.0), -Y[:, 1]))
    names = [f"temp_{i}" for i in range(D + 2)]
    said = "1 feature is constant (temp_8), 1 is a copy of another (temp_9)"
    assert diagnose(pd.DataFrame(Y, columns=names))["features"].measured == said
    assert diagnose(Y, feature_names=names)["features"].measured == said
    for plain in (Y, pd.DataFrame(Y)):
        assert diagnose(plain)["features"].measured == said.replace("temp_", "")
    with pytest.raises(ValueError, match="feature_names must hold 10 names, one for each feature; got 2"):
        diagnose(Y, feature_names=names[:2])


# The report


def test_one_is_singular(rng):
    Y = good(rng).samples
    Y[np.argmax(np.linalg.norm(Y, axis=1))] *= 1e6
    assert diagnose(Y)["outliers"].measured.startswith(f"1 of {M} samples is far longer")
    codes = np.column_stack((good(rng).codes[:, :4], rng.standard_normal(M)))
    found = diagnose(np.insert(mixed(codes, rng), 4, 3.0, axis=1))
    assert found["directions"].measured.startswith("1 of 5 directions looks Gaussian")
    assert found["features"].measured == "1 feature is constant (4), 0 are copies of others"


def test_a_diagnosis_speaks(seed):
    found = diagnose(elliptical(np.random.default_rng(seed)))
    lines = found.summary().splitlines()
    assert lines[0] == f"{M} samples of {D} features, {M} looked at"
    assert lines[1] == found.verdict
    assert "1 broken (structure)" in found.verdict
    assert lines[3].startswith("broken    structure ")
    assert "->" in lines[4]
    assert found.verdict in repr(found)
    assert str(found) == found.summary()
    loaded = json.loads(json.dumps(found.as_dict()))
    assert loaded["broken"] == ["structure"]
    assert {finding["code"] for finding in loaded["findings"]} == {finding.code for finding in found.findings}
    with pytest.raises(KeyError, match="nonsense: there are finite"):
        found["nonsense"]
    with pytest.raises(AttributeError):
        found.samples = 3


def test_one_seed_one_answer(seed):
    Y = good(seed, supports="blocks", snr=10.0).samples
    assert diagnose(Y, random_state=seed).as_dict() == diagnose(Y, random_state=seed).as_dict()


# Models


@pytest.mark.parametrize("kind", MODELS)
def test_before_and_after_a_fit(kind, seed):
    Y = nice_samples(2 * M, D, snr=20.0, dictionary="orthonormal", random_state=seed).samples
    model = MODELS[kind]()
    before = model.diagnose(Y[:M])
    assert before.as_dict() == diagnose(Y[:M]).as_dict()
    model.fit(Y[:M])
    after = model.diagnose(Y[M:])
    assert after.ok
    assert {f.code for f in after.findings} - {f.code for f in before.findings} == {
        "certificates", "span", "scale", "codes",
    }  # fmt: skip
    assert after["certificates"].value == np.mean(model.certified_)
    for code in ("certificates", "span", "scale", "codes"):
        assert re.search(r": must be at (most|least) \d.*, better ", after[code].measured)


def test_samples_of_another_kind_are_named(seed):
    few = {"dictionary": "orthonormal", "random_state": seed}
    narrow = quartic.SpectralDictionaryLearning().fit(nice_samples(M, 3, 10, **few).samples)
    other = nice_samples(M, 3, 10, dictionary="orthonormal", random_state=seed + 1000).samples
    assert "span" in narrow.diagnose(other).broken
    model = quartic.SpectralDictionaryLearning().fit(nice_samples(M, D, **few).samples)
    other = nice_samples(M, D, dictionary="orthonormal", random_state=seed + 1000).samples
    assert model.diagnose(other).broken == ["codes"]
    assert model.diagnose(3 * nice_samples(M, D, **few).samples).broken == ["scale"]


@pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")
def test_certificates_that_are_missing_are_named(rng):
    Y = rng.standard_normal((300, 4))
    assert {"structure", "certificates"} <= set(quartic.SpectralICA(4).fit(Y).diagnose(Y).broken)


def test_other_features_are_refused(seed):
    model = quartic.SpectralDictionaryLearning().fit(good(seed).samples)
    with pytest.raises(ValueError, match=f"Y has 3 features, but {D} were learned from"):
        model.diagnose(good(seed).samples[:, :3])


# The figures


def test_uniformity_is_a_score_for_every_elliptical_distribution():
    rng = np.random.default_rng(0)
    for scale in (1.0, np.sqrt(rng.chisquare(3, (500, 1))), np.exp(2 * rng.standard_normal((500, 1)))):
        scores = [uniformity(mixed(rng.standard_normal((500, 6)) / scale, rng)) for _ in range(10)]
        assert np.max(np.abs(scores)) < 5
        assert 0.3 < np.std(scores) < 2
    assert uniformity(mixed(rng.laplace(size=(1000, 6)), rng)) > 5
    assert uniformity(mixed(rng.uniform(-1, 1, size=(1000, 6)), rng)) > 5
    assert uniformity(np.ones((5, 1))) == np.inf


def test_changes_sees_means_variances_and_axes(rng):
    Z = rng.laplace(size=(2000, 4)) * (rng.random((2000, 4)) < 0.2)
    late = np.arange(2000)[:, None] >= 1000
    turned = Z @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert changes(Z) < 6
    for other in (Z + 0.5, Z * [5, 5, 1, 1], turned):
        assert changes(np.where(late, other, Z)) > 6
    assert changes(Z[:10]) == 0


def test_skewness_is_a_score_under_random_signs(rng):
    S = rng.exponential(size=(4000, 3)) - 1
    values, scores = skewness(S)
    np.testing.assert_allclose(values, 2, atol=0.7)
    assert np.all(scores > 5)
    assert np.all(np.abs(skewness(S * rng.choice([-1, 1], S.shape))[1]) < 5)
    assert np.all(skewness(np.zeros((5, 2)))[1] == 0)


def test_neighbours_are_rows_that_follow_each_other(rng):
    S = lfilter([1.0], [1.0, -0.8], rng.standard_normal((5000, 2)), axis=0)
    assert neighbours(S, np.arange(5000))[0] == pytest.approx(0.8, abs=0.1)
    assert neighbours(rng.permutation(S), np.arange(5000))[0] < 0.1
    assert neighbours(S[::2], np.arange(0, 5000, 2)) == (0.0, 0)


def test_tied_is_tau_where_the_axes_are_right(seed):
    data = nice_samples(20_000, 8, supports="blocks", group=4, cooccurrence=0.5, random_state=seed)
    correlation, tau, count = tied(data.codes / np.sqrt(0.1))
    assert count == 2
    assert tau == pytest.approx(0.5, abs=0.05)
    assert correlation == pytest.approx((0.5 - 0.1) / (1 - 0.1), abs=0.05)
    assert tied(nice_samples(5000, 8, random_state=seed).codes / np.sqrt(0.1)) == (0.0, 0.0, 0)


def test_spaced_rows_come_from_all_over():
    Z = np.arange(10.0)[:, None]
    assert spaced(Z, 4)[:, 0].tolist() == [0, 3, 6, 9]
    assert spaced(Z, 20) is Z


def test_a_feature_that_counts_the_rows_is_named(seed):
    Y = nice_samples(3000, 5, random_state=seed).samples
    names = ["id", *(f"t{j}" for j in range(5))]
    found = diagnose(np.column_stack([np.arange(3000) * 2.0 + 7, Y]), feature_names=names)["features"]
    assert found.level == "doubtful"
    assert "1 counts the rows (id)" in found.measured
    assert diagnose(Y)["features"].level == "ok"
    assert diagnose(np.column_stack([np.arange(3000), Y])).ok  # and nothing else of it


@pytest.mark.parametrize("kind", ["code", "rare code", "missing rows", "stuck", "clipped"])
def test_a_value_that_is_there_too_often_is_named(kind, seed):
    rng = np.random.default_rng(seed)
    Y = 5 + nice_samples(20_000, 6, coefficients="gaussian", random_state=seed).samples
    assert diagnose(Y)["repeated"].level == "ok"  # samples without an active atom are all the same
    if kind == "code":
        Y[rng.random(20_000) < 0.03, 2] = -999
    elif kind == "rare code":
        Y[rng.random(20_000) < 0.012, 2] = -999  # which a fit leaves out
    elif kind == "missing rows":
        Y[rng.random(20_000) < 0.03] = -999
    elif kind == "stuck":
        Y[4000:4600, 2] = 5.25
    else:
        Y[:, 2] = np.clip(Y[:, 2], *np.quantile(Y[:, 2], (0.03, 0.97)))
    found = diagnose(Y)["repeated"]
    assert found.level == "doubtful"
    assert ("feature 2 is -999" if "code" in kind else "feature 2 is ") in found.measured
    assert 0.006 < found.value < 0.04


def test_values_of_few_kinds_are_no_fault(seed):
    for options in ({"coefficients": "sign"}, {"coefficients": "sign", "dictionary": "orthonormal"}):
        assert diagnose(nice_samples(5000, 8, random_state=seed, **options).samples)["repeated"].level == "ok"
    counts = np.random.default_rng(seed).poisson(3.0, (5000, 6)).astype(float)
    assert diagnose(counts)["repeated"].level == "ok"
    resting = np.abs(nice_samples(5000, 8, coefficients="gaussian", p=0.3, random_state=seed).codes)  # 6% of them
    assert diagnose(resting @ np.random.default_rng(seed).standard_normal((8, 8)))["repeated"].level == "ok"
    fine = nice_samples(5000, 8, coefficients="gaussian", random_state=seed).samples
    assert diagnose(np.round(fine, 2))["repeated"].level == "ok"


def test_what_is_there_most_often():
    Y = np.array([[0.0, 5], [7, 5], [-1, 5], [0, 1], [0, 2], [7, 3], [-1, 4], [-1, 6], [3, 6]])
    value, times, third, distinct = often(Y)  # of which the medians are 0 and 5
    assert (value.tolist(), times.tolist(), third.tolist(), distinct.tolist()) == ([-1, 6], [3, 2], [1, 1], [4, 6])
    again = np.concatenate([Y, [[-1, 6], [-1, 6]]])  # a state of rest, which is not looked at
    assert often(again)[0][0] == 7
    assert often(np.concatenate([again[:-3], [[-9, 20]] * 4]))[0].tolist() == [-9, 20]  # too far from all others
