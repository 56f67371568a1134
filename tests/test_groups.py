"""Groups of rows: samples of one subject depend on each other, and certificates count subjects then, wherever rows are.

Nothing else about the samples may matter: not the names of the groups, nor how the rows are cut, ordered or read.
"""

import importlib.util
import io
import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from command_line import assert_refused, outcome

import quartic
from quartic import Collection, Covariance, DecompositionWarning, FourthMoment, SpectralDictionaryLearning, SpectralICA
from quartic.certify import Reason
from quartic.datasets.tensors import random_orthonormal
from quartic.evidence.groups import codes_of
from quartic.evidence.kept import Kept
from quartic.evidence.parts import Evidence
from quartic.evidence.units import GROUPS, Kind
from quartic.metrics import match
from quartic.samples import Held

D, EACH = 4, 300
pytestmark = pytest.mark.filterwarnings("ignore::quartic.DecompositionWarning")  # few groups certify less


def subjects(seed, n=20, *, noise=0.1, each=EACH, d=D):
    """Samples of Laplace sources, with noise of its own for each subject; in random order; whose; and the atoms."""
    rng = np.random.default_rng(seed)
    A = random_orthonormal(d, d, rng)
    who = rng.permutation(np.repeat(np.arange(n), each))
    Y = rng.laplace(size=(n * each, d)) / np.sqrt(2) @ A
    return Y + noise * rng.standard_normal((n, d))[who], who, A


def private(seed, n=16, d=8):
    """Samples along an axis that each subject has for itself; whose."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(n), 400))
    B = rng.standard_normal((n, d))
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    return rng.laplace(size=(n * 400, 1)) * B[who] + 0.05 * rng.standard_normal((n * 400, d)), who


def fitted(Y, groups=None, kind=SpectralDictionaryLearning, **parameters):
    return kind(**parameters).fit(Y, groups=groups)


def wrong(model, A):
    return int(np.sum(model.certified_ & (match(model.components_, A).squared < 0.5)))


def same(a, b, close=1e-8):
    np.testing.assert_allclose(a.components_, b.components_, rtol=0, atol=close)
    np.testing.assert_allclose(a.certificates_, b.certificates_, rtol=0, atol=1e-6)
    assert [d and d.reason for d in a.doubts_] == [d and d.reason for d in b.doubts_]


class TestCertificates:
    @pytest.mark.parametrize("refine", [True, False])
    def test_of_twenty_subjects_are_right(self, seed, refine):
        Y, who, A = subjects(seed)
        model = fitted(Y, who, refine=refine)
        assert np.sum(model.certified_) >= D / 2
        assert wrong(model, A) == 0

    def test_of_forty_are_more(self, seed):
        Y, who, A = subjects(seed, 40, noise=0.2)
        model = fitted(Y, who, kind=SpectralICA)
        assert model.status_.ok
        assert match(model.mixing_.T, A).found(0.98) == D

    @pytest.mark.parametrize("n", [None, 16])
    def test_there_are_none_of_what_subjects_have_for_themselves(self, seed, n):
        """Other subjects do not have it, but other rows do."""
        Y, who = private(seed)
        for refine in (True, False):
            assert not np.any(fitted(Y, who, n_components=n, refine=refine).certified_)
        if n is not None:
            assert np.sum(fitted(Y, rows="exchangeable", n_components=n).certified_) > 5

    @pytest.mark.parametrize("refine", [True, False])
    def test_from_few_groups_there_are_none(self, seed, refine):
        for n in (1, 2, GROUPS - 1):
            Y, who, _ = subjects(seed, n)
            model = fitted(Y, who, refine=refine)
            assert not np.any(model.certified_)
            assert {doubt.reason for doubt in model.doubts_} == {Reason.SERIAL}

    def test_of_more_atoms_than_dimensions(self, seed):
        data = quartic.datasets.nice_samples(20_000, 12, d=8, p=0.1, dictionary="gaussian", random_state=seed)
        model = fitted(data.samples, np.arange(20_000) % 50, n_components=12)
        assert np.sum(model.certified_) >= 10
        assert np.all(match(model.components_, data.components).squared[model.certified_] > 0.5)

    def test_count_samples_of_one_group_each_as_rows(self, seed):
        Y = subjects(seed)[0]
        model = fitted(Y, np.arange(len(Y)))
        assert model.status_.ok


class TestNames:
    @pytest.mark.parametrize("refine", [True, False])
    def test_do_not_matter(self, seed, refine):
        Y, who, _ = subjects(seed)
        first = fitted(Y, who, refine=refine)
        for names in (np.random.default_rng(seed).permutation(20), np.array([f"subject {k}" for k in range(20)])):
            same(first, fitted(Y, names[who], refine=refine))

    def test_nor_does_how_they_are_given(self, seed):
        pd = pytest.importorskip("pandas")
        _, who, _ = subjects(seed)
        expected = codes_of(who)
        text = np.array([str(k) for k in who])
        others = (who.tolist(), who.astype(np.int8), who.astype(float), text, text.astype(object), text.tolist())
        for given in (*others, pd.Series(who), pd.Series(text), pd.Series(text, dtype="category")):
            np.testing.assert_array_equal(codes_of(given), expected)

    def test_have_the_same_codes_everywhere(self):
        """In another process, with another seed of Python's own hash; files hold them."""
        program = "from quartic.evidence.groups import codes_of; print(codes_of(['a', 'b', 'ä', 7]).tolist())"
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert json.loads(out) == codes_of(["a", "b", "ä", 7]).tolist()
        assert codes_of(["a", 7]).tolist() == [3405396810240292928, 9407870976149377255]

    def test_deal_groups_to_halves_of_one_size(self, seed):
        Y, who, _ = subjects(seed, 21)
        frame = Covariance().update(Y).frame()
        units = Evidence.of(Held(Y, groups=codes_of(who)), frame).units
        assert (units.kind, units.count) == (Kind.GROUPS, 21)
        assert sorted(len(np.unique(units.of[units.half == h])) for h in (0, 1)) == [10, 11]
        assert len(np.unique(np.stack((units.of, units.half)), axis=1).T) == 21


class TestBatches:
    def test_any_give_the_same(self, seed):
        Y, who, _ = subjects(seed)
        frame = Covariance().update(Y).frame()
        whole = fitted(Y, who, refine=False, frame=frame)
        for cuts in ([3000], [11, 12, 2000, 5000]):
            model = SpectralDictionaryLearning(frame=frame)
            for rows, groups in zip(np.split(Y, cuts), np.split(who, cuts), strict=True):
                model.partial_fit(rows, groups=groups)
            same(whole, model)
            np.testing.assert_allclose(whole.stability_, model.stability_, atol=1e-8)  # halves of the moment as well

    def test_merge_save_and_load(self, seed, tmp_path):
        Y, who, _ = subjects(seed)
        frame = Covariance().update(Y).frame()
        parts = [slice(0, 1000), slice(1000, 6000)]
        here, there = (FourthMoment(frame).update(Y[a], groups=who[a], index=a.start) for a in parts)
        there.save(tmp_path / "there.npz")
        both = FourthMoment(frame).merge(FourthMoment.load(tmp_path / "there.npz")).merge(here)
        whole = FourthMoment(frame).update(Y, groups=who)
        np.testing.assert_allclose(both.fourth, whole.fourth, rtol=1e-10)
        np.testing.assert_array_equal(both.kept.groups, whole.kept.groups)
        np.testing.assert_array_equal(whole.kept.groups, codes_of(who)[whole.kept.index])
        same(SpectralDictionaryLearning().fit_moment(both), fitted(Y, who, refine=False, frame=frame))
        copied = both.to_numpy()
        np.testing.assert_array_equal(copied.kept.groups, whole.kept.groups)

    def test_halves_go_by_groups(self, seed):
        Y, who, _ = subjects(seed)
        covariance = Covariance().update(Y, groups=who)
        moment = FourthMoment(covariance.frame())
        for k in range(20):
            before = moment.weight.copy()
            moment.update(Y[who == k], groups=who[who == k])
            assert sorted(moment.weight - before) == [0, EACH]
        np.testing.assert_array_equal(moment.weight, covariance.weight)

    def test_with_groups_and_without_are_not_mixed(self, seed):
        Y, who, _ = subjects(seed)
        frame = Covariance().update(Y).frame()
        message = "groups must be given for all samples or for none"
        for first, second in ((who, None), (None, who)):
            moment, other = FourthMoment(frame).update(Y, groups=first), FourthMoment(frame).update(Y, groups=second)
            before = moment.fourth.copy()
            with pytest.raises(ValueError, match=message):
                moment.merge(other)
            with pytest.raises(ValueError, match=message):
                moment.update(Y, groups=second)
            np.testing.assert_array_equal(moment.fourth, before)
            assert moment.merge(FourthMoment(frame)).count == len(Y)
            model = SpectralDictionaryLearning().partial_fit(Y, groups=first)
            with pytest.raises(ValueError, match=message):
                model.partial_fit(Y, groups=second)
            assert model.n_samples_seen_ == len(Y)

    def test_rows_are_kept_with_their_groups(self, seed, monkeypatch):
        monkeypatch.setattr("quartic.evidence.kept.MOST", 50)
        rng = np.random.default_rng(seed)
        Z, index, w, groups = rng.standard_normal((300, 2)), np.arange(300), np.ones(300), np.arange(300) * 7
        kept = Kept.none(2)
        for rows in np.array_split(rng.permutation(300), 7):
            kept = kept.with_rows(Z[rows], index[rows], w[rows], groups[rows])
        np.testing.assert_array_equal(kept.groups, 7 * kept.index)
        again = Kept.restored(kept.arrays)
        np.testing.assert_array_equal(again.groups, kept.groups)
        assert "kept_groups" not in Kept.none(2).arrays


class TestCollections:
    @pytest.fixture(autouse=True)
    def _dask(self):
        pytest.importorskip("dask")

    @pytest.mark.parametrize("rows", [400, 1777, 6000])
    @pytest.mark.parametrize("parameters", [{}, {"refine": False}, {"rows": "exchangeable", "trim": False}])
    def test_give_the_answer_of_samples_in_memory(self, seed, rows, parameters):
        import dask.array as da

        Y, who, _ = subjects(seed)
        X = da.from_array(Y, chunks=(rows, D))
        expected = fitted(Y, who, **parameters)
        same(expected, fitted(X, who, **parameters))
        names = da.from_array(np.array([str(k) for k in who]), chunks=999)
        same(expected, fitted(Collection(X, groups=names), **parameters))

    def test_of_rows_that_are_fetched(self, seed, monkeypatch):
        import dask.array as da

        monkeypatch.setattr("quartic.distributed.SUBSAMPLE_LEAST", 300)
        Y, who, _ = subjects(seed, 40)
        same(fitted(Y, who), fitted(da.from_array(Y, chunks=(1500, D)), who))

    def test_by_the_name_of_a_column(self, seed):
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        Y, who, _ = subjects(seed)
        table = pd.DataFrame(Y, columns=list("abcd")).assign(subject=[f"s{k}" for k in who])
        expected = fitted(table[list("abcd")], table["subject"])
        parts = dd.from_pandas(table, npartitions=5)
        for X, groups in ((table, "subject"), (parts, "subject"), (parts[list("abcd")], parts["subject"])):
            model = fitted(X, groups)
            same(expected, model)
            assert model.feature_names_in_.tolist() == list("abcd")
        same(expected, fitted(Collection(parts, groups="subject")))
        frame = expected.frame_
        found = FourthMoment(frame).update(parts, groups="subject")
        np.testing.assert_array_equal(found.kept.groups, codes_of(table["subject"])[found.kept.index])
        model = SpectralDictionaryLearning(frame=frame).partial_fit(table, groups="subject")
        same(model, SpectralDictionaryLearning().fit_moment(found))
        for X in (table, parts):
            with pytest.raises(ValueError, match=r"the name of a column \(a, b, c, d, subject\); got 'session'"):
                fitted(X, "session")

    def test_refuse_labels_that_do_not_fit(self, seed):
        import dask.array as da

        Y, who, _ = subjects(seed)
        X = da.from_array(Y, chunks=(1000, D))
        missing = who.astype(float)
        missing[2345] = np.nan
        with pytest.raises(ValueError, match="groups holds no label in row 2345"):
            fitted(X, missing)
        with pytest.raises(ValueError, match=r"groups must hold 6000 labels; got shape \(5,\)"):
            fitted(X, who[:5])
        with pytest.raises(ValueError, match="there are no columns with names; got 'subject'"):
            fitted(X, "subject")
        with pytest.raises(ValueError, match="groups must be given to the Collection"):
            fitted(Collection(X), who)

    def test_go_on_from_a_checkpoint_of_the_same_groups(self, seed, tmp_path):
        import dask.array as da

        Y, who, _ = subjects(seed)
        X = da.from_array(Y, chunks=(1000, D))
        path = tmp_path / "run.npz"
        first = fitted(Collection(X, groups=who, checkpoint=path), refine=False)
        same(first, fitted(Collection(X, groups=who, checkpoint=path), refine=False), 0)
        for groups in (None, 19 - who):
            with pytest.raises(ValueError, match="belongs to other data, chunks or settings"):
                fitted(Collection(X, groups=groups, checkpoint=path), refine=False)


@pytest.mark.parametrize("kind", [SpectralDictionaryLearning, SpectralICA])
class TestBadInput:
    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (np.arange(5), r"groups must hold 6000 labels, one for each sample; got shape \(5,\)"),
            (np.zeros((6000, 1), dtype=int), r"got shape \(6000, 1\)"),
            (np.append(np.ones(5999), np.nan), "groups holds no label in row 5999: fill in what is missing"),
            ([None, *range(5999)], "groups holds no label in row 0"),
            (["a", float("nan"), *["b"] * 5998], "groups holds no label in row 1"),
            (np.full(6000, 0.5), "groups must hold whole numbers or strings; got 0.5"),
            (np.ones(6000, dtype=complex), "groups must hold whole numbers or strings; got dtype complex128"),
            ([[1]] * 6000, "groups must hold whole numbers or strings"),
            ("subject", "there are no columns with names; got 'subject'"),
        ],
        ids=lambda x: x if isinstance(x, str) else "",
    )
    def test_groups(self, kind, groups, message):
        Y = subjects(0)[0]
        model = kind()
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=message):
                method(Y, groups=groups)
        assert not hasattr(model, "components_")

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"rows": "ordered"}, "rows must be one of auto, exchangeable; got 'ordered'"),
            ({"rows": None}, "rows must be one of auto, exchangeable; got None"),
            ({"trim": "no"}, "trim must be True or False; got 'no'"),
            ({"trim": 1}, "trim must be True or False; got 1"),
        ],
    )
    def test_parameters(self, kind, parameters, message):
        Y = subjects(0)[0]
        for method in (kind(**parameters).fit, kind(**parameters).partial_fit):
            with pytest.raises(ValueError, match=message):
                method(Y)


class TestRowsAndTrim:
    def slow(self, seed):
        """Sources whose magnitudes are those of their neighbours: rows depend on each other."""
        rng = np.random.default_rng(seed)
        scale = np.exp(np.repeat(rng.standard_normal((60, D)), 100, axis=0))
        return scale * rng.standard_normal((6000, D)) @ random_orthonormal(D, D, rng)

    @pytest.mark.parametrize("refine", [True, False])
    def test_order_means_nothing_if_it_is_said(self, seed, refine):
        Y = self.slow(seed)
        told = fitted(Y, rows="exchangeable", refine=refine)
        assert np.sum(told.certified_) > np.sum(fitted(Y, refine=refine).certified_)
        batches = SpectralDictionaryLearning(rows="exchangeable", frame=told.frame_).partial_fit(Y)
        moment = SpectralDictionaryLearning(rows="exchangeable").fit_moment(batches.moment_)
        np.testing.assert_allclose(moment.certificates_, batches.certificates_)
        assert np.sum(batches.certified_) > 0

    def test_in_collections(self, seed):
        da = pytest.importorskip("dask.array")
        Y = self.slow(seed)
        for rows in ("exchangeable", "auto"):
            for size in (900, 6000):
                same(fitted(Y, rows=rows), fitted(da.from_array(Y, chunks=(size, D)), rows=rows))

    @pytest.mark.parametrize("refine", [True, False])
    def test_nothing_is_left_out_if_it_is_said(self, seed, refine):
        da = pytest.importorskip("dask.array")
        Y, _, _ = subjects(seed)
        Y[[10, 3000]] *= 1e3
        X = da.from_array(Y, chunks=(1000, D))
        for data in (Y, X):
            assert fitted(data, refine=refine).report_.trimmed == 2
            assert fitted(data, refine=refine, trim=False).report_.trimmed == 0
        same(fitted(Y, refine=refine, trim=False), fitted(X, refine=refine, trim=False))
        assert SpectralDictionaryLearning(trim=False).partial_fit(Y).report_.trimmed == 0

    def test_magnitudes_that_overflow_are_refused_all_the_same(self, seed):
        Y = 1e200 * subjects(seed)[0]
        for method in (SpectralDictionaryLearning(trim=False).fit, SpectralDictionaryLearning(trim=False).partial_fit):
            with pytest.raises(ValueError, match=r"magnitude.*rescale"):
                method(Y)

    def test_are_kept_in_files(self, seed, tmp_path):
        model = fitted(subjects(seed)[0], rows="exchangeable", trim=False)
        model.save(tmp_path / "model.npz")
        again = SpectralDictionaryLearning.load(tmp_path / "model.npz")
        assert (again.rows, again.trim) == ("exchangeable", False)


class TestCommandLine:
    @pytest.fixture
    def run(self, capsys):
        return lambda *argv: outcome(capsys, *argv)

    @pytest.fixture
    def data(self, tmp_path):
        """The same samples as text, with an index, with labels that are numbers, and as Parquet; and as arrays."""
        pd = pytest.importorskip("pandas")
        Y, who, _ = subjects(0)
        table = pd.DataFrame(Y, columns=list("abcd"))
        table.insert(2, "subject", [f"s{k}" for k in who])
        table.to_csv(tmp_path / "plain.csv", index=False)
        table.to_csv(tmp_path / "index.csv")
        table.to_csv(tmp_path / "blanks.txt", index=False, sep="\t")
        table.assign(subject=who).to_csv(tmp_path / "numbers.csv", index=False)
        if importlib.util.find_spec("pyarrow") is not None:
            table.to_parquet(tmp_path / "table.parquet", row_group_size=700)
            (tmp_path / "parts").mkdir()
            table[:2500].to_parquet(tmp_path / "parts" / "a.parquet", row_group_size=700)
            table[2500:].to_parquet(tmp_path / "parts" / "b.parquet")
        np.save(tmp_path / "plain.npy", Y)
        return tmp_path, Y, table["subject"].to_numpy()

    @pytest.mark.parametrize(
        "name", ["plain.csv", "index.csv", "blanks.txt", "numbers.csv", "table.parquet", "parts", "-"]
    )
    def test_learn_from_every_format(self, run, data, monkeypatch, name):
        folder, Y, groups = data
        if name in ("table.parquet", "parts"):
            pytest.importorskip("pyarrow")
        if name == "-":
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "plain.csv").read_bytes())))
        file = name if name == "-" else folder / name
        code, out, _ = run("learn", file, "--groups", "subject", "--json")
        found, expected = json.loads(out), fitted(Y, groups)
        assert code == (0 if expected.status_.ok else 3)
        np.testing.assert_allclose(found["components"], expected.components_, atol=1e-8)
        np.testing.assert_allclose(found["certificates"], expected.certificates_, atol=1e-6)
        assert found["feature_names"] == list("abcd")

    def test_options_reach_the_library(self, run, data):
        folder = data[0]
        run("learn", folder / "plain.npy", "--rows", "exchangeable", "--no-trim", "--out", folder / "model.npz")
        model = SpectralDictionaryLearning.load(folder / "model.npz")
        assert (model.rows, model.trim) == ("exchangeable", False)
        assert_refused(run("learn", folder / "plain.npy", "--rows", "any"), "--rows", "exchangeable")

    def test_moments_travel_with_groups(self, run, data):
        pytest.importorskip("pyarrow")
        folder, Y, groups = data
        run("moments", folder / "table.parquet", "--groups", "subject", "--out", folder / "first.npz")
        run("merge", folder / "first.npz", "--frame", folder / "frame.npz")
        moments = {}
        for name in ("plain.csv", "table.parquet", "parts"):
            given = ("--groups", "subject", "--frame", folder / "frame.npz")
            assert run("moments", folder / name, *given, "--out", folder / "x.npz")[0] == 0
            moments[name] = FourthMoment.load(folder / "x.npz")
        for moment in moments.values():
            np.testing.assert_array_equal(moment.kept.groups, moments["plain.csv"].kept.groups)
            np.testing.assert_allclose(moment.fourth, moments["plain.csv"].fourth, rtol=1e-9)
        _, out, _ = run("learn", "--from-moments", folder / "x.npz", "--json")
        expected = fitted(Y, groups, refine=False)
        np.testing.assert_allclose(json.loads(out)["certificates"], expected.certificates_, atol=1e-6)
        run(
            "moments",
            folder / "plain.npy",
            "--first",
            "6000",
            "--frame",
            folder / "frame.npz",
            "--out",
            folder / "y.npz",
        )
        refused = run("merge", folder / "x.npz", folder / "y.npz", "--out", folder / "z.npz")
        assert_refused(refused, "y.npz: groups must be given for all samples or for none")

    def test_transform_leaves_the_column_out(self, run, data):
        folder, Y, _ = data
        run("learn", folder / "plain.csv", "--groups", "subject", "--out", folder / "model.npz")
        code, _, _ = run(
            "transform", folder / "model.npz", folder / "plain.csv", "--groups", "subject", "--out", folder / "x.npy"
        )
        assert code == 0
        model = SpectralDictionaryLearning.load(folder / "model.npz")
        del model.feature_names_in_
        np.testing.assert_allclose(np.load(folder / "x.npy"), model.transform(Y), atol=1e-8)

    def test_what_is_wrong_is_said(self, run, data):
        folder, _, groups = data
        has = "has no such column, but a, b, subject, c, d; give one of these names"
        assert_refused(run("learn", folder / "plain.csv", "--groups", "sub"), "--groups sub: ", has)
        assert_refused(run("moments", folder / "plain.csv", "--groups", "sub", "--out", folder / "x.npz"), has)
        assert_refused(run("learn", folder / "plain.npy", "--groups", "sub"), "plain.npy has no names of columns")
        no_header = folder / "none.csv"
        no_header.write_text("1,2\n3,4\n")
        assert_refused(run("learn", no_header, "--groups", "1"), "none.csv has no names of columns")
        (folder / "alone.csv").write_text("\n".join(["subject", *groups]))
        assert_refused(run("learn", folder / "alone.csv", "--groups", "subject"), "has no other column")
        for label in ("", "NA"):
            lines = (folder / "plain.csv").read_text().splitlines()
            first = lines[4].split(",")
            lines[4] = ",".join([*first[:2], label, *first[3:]])
            (folder / "missing.csv").write_text("\n".join(lines))
            refused = run("learn", folder / "missing.csv", "--groups", "subject")
            assert_refused(refused, "missing.csv: line 5, column 3 (subject)", "a value is missing")
        lines = (folder / "plain.csv").read_text().replace("\n", "\nword,", 1)
        (folder / "word.csv").write_text(lines)
        assert_refused(run("learn", folder / "word.csv", "--groups", "subject"), "line 2, column 1 (a): 'word' is not")
        assert_refused(
            run("learn", "--from-moments", folder / "x.npz", "--groups", "subject"), "leave out --key, --groups"
        )
        assert_refused(run("learn", "--from-moments", folder / "x.npz", "--no-trim"), "--no-trim")

    def test_of_parquet_too(self, run, data):
        pytest.importorskip("pyarrow")
        pd = pytest.importorskip("pandas")
        folder = data[0]
        assert_refused(
            run("learn", folder / "table.parquet", "--groups", "sub"), "no such column, but a, b, subject, c, d"
        )
        assert_refused(run("learn", folder / "no.parquet", "--groups", "sub"), "no such file or folder")
        table = pd.read_parquet(folder / "table.parquet")
        table.loc[1234, "subject"] = None
        table.to_parquet(folder / "missing.parquet", row_group_size=1000)
        refused = run("learn", folder / "missing.parquet", "--groups", "subject")
        assert_refused(refused, "missing.parquet: ", "groups holds no label in row 1234")


def test_warns_of_too_few_groups():
    Y, who, _ = subjects(0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DecompositionWarning, match="There are 3 groups of rows; 10 are needed"):
            fitted(Y, who)
