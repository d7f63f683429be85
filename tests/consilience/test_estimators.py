"""Estimators: crowd-kit's calls and shapes, the duck typing of `sklearn.base.clone`, and the user's own values."""

import copy
import inspect
import pickle
import subprocess
import sys
import types

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience import estimators
from consilience.errors import InputError, UnknownName, UnsupportedRequest, WrongKind

pytestmark = pytest.mark.filterwarnings("ignore:confusion matrices lean towards the prior")  # twenty tasks are few
ESTIMATORS = [getattr(cs, name) for name in cs._HOME[estimators.__name__]]
CROWDS = [one for one in ESTIMATORS if cs.Annotations in one._model.takes]
CONFUSED = [cs.DawidSkene, cs.GLAD, cs.MACE, cs.OneCoin]
WITH = {
    "errors_": CONFUSED, "priors_": CONFUSED, "skills_": [*CONFUSED, cs.MajorityVote],
    "probas_": [*CROWDS, cs.PlackettLuce], "loss_history_": [*CONFUSED, cs.MPA, cs.PlackettLuce, cs.Linker],
    "gold": [*CONFUSED, cs.MajorityVote, cs.MPA],
}  # fmt: skip
GIVEN = {cs.PlackettLuce: {"method": "em"}}


def each(listed):
    return pytest.mark.parametrize("estimator", listed, ids=lambda one: one.__name__)


every = each(ESTIMATORS)

# Twenty tasks, every other one a dog. Four workers are right, and one says "cat" whatever she sees. By hand: all models
# return the truth; "cem" is right half of the time; both labels are as frequent.
TRUTH = pandas.Series(["cat", "dog"] * 10, index=[f"t{place}" for place in range(20)])
WORKERS = ["ann", "bob", "cem", "dan", "eve"]


def crowd(task="task", worker="worker"):
    rows = [(item, who, "cat" if who == "cem" else label) for item, label in TRUTH.items() for who in WORKERS]
    return pandas.DataFrame(rows, columns=[task, worker, "label"])


# Every worker ranks both classes, and "cem" puts the cat first whatever she sees.
OTHERS = crowd().replace({"label": {"cat": "dog", "dog": "cat"}})
RANKED = pandas.concat([crowd().assign(rank=1), OTHERS.assign(rank=2)])

# Two records of each of two people, and four others.
PEOPLE = pandas.DataFrame(
    {
        "id": list("abcdefgh"), "name": ["Ann", "Ann", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay"],
        "born": [80, 80, 75, 75, 90, 91, 60, 44], "town": ["Ulm", "Ulm", "Bonn", "Bonn"] * 2,
    }
)  # fmt: skip
ENTITIES = pandas.Series(list("aaccefgh"), pandas.Index(PEOPLE["id"], name="record"), name="entity")

DATA = {**dict.fromkeys(CROWDS, crowd()), cs.PlackettLuce: RANKED, cs.Linker: PEOPLE}


@pytest.fixture(scope="module")
def fitted():
    """Return a function that fits an estimator, once, with the options of the data by hand."""
    kept = {}

    def fitted(estimator):
        if estimator not in kept:
            kept[estimator] = estimator(**GIVEN.get(estimator, {})).fit(DATA[estimator])
        return kept[estimator]

    return fitted


# ---- shapes


@every
def test_labels_are_those_found_by_hand_in_the_shape_of_crowd_kit(estimator, fitted):
    truth = ENTITIES if estimator is cs.Linker else TRUTH.rename("agg_label").rename_axis("task")
    pandas.testing.assert_series_equal(fitted(estimator).labels_, truth, check_index_type=False, check_dtype=False)


@each(WITH["probas_"])
def test_probabilities_are_a_row_a_task_and_lead_with_the_label(estimator, fitted):
    found = fitted(estimator).probas_
    assert found.shape == (20, 2)
    assert found.columns.tolist() == ["cat", "dog"]
    assert (found.index.name, found.columns.name) == ("task", "label")
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    assert (found.idxmax(axis="columns") == TRUTH).all()


@each(WITH["skills_"])
def test_skills_tell_who_says_the_same_of_everything(estimator, fitted):
    found = fitted(estimator).skills_
    assert (found.name, found.index.name, found.index.tolist()) == ("skill", "worker", WORKERS)
    assert found.drop("cem").min() > found["cem"] + 0.2


@every
def test_fit_predict_returns_what_stays_after_the_fit(estimator, fitted):
    before, model = fitted(estimator), estimator(**GIVEN.get(estimator, {}))
    pandas.testing.assert_series_equal(model.fit_predict(DATA[estimator]), before.labels_)
    assert isinstance(model.fit_, cs.Fit)
    assert model.fit_.data.fingerprint() == before.fit_.data.fingerprint()
    if estimator in WITH["probas_"]:
        pandas.testing.assert_frame_equal(model.fit_predict_proba(DATA[estimator]), before.probas_)


def test_majority_vote_has_shares_and_skills_by_hand(fitted):
    found = fitted(cs.MajorityVote)
    expected = np.where(TRUTH == "cat", 1.0, 0.2)
    np.testing.assert_allclose(found.probas_["cat"], expected)
    assert found.skills_.to_dict() == {"ann": 1, "bob": 1, "cem": 0.5, "dan": 1, "eve": 1}


def test_em_has_errors_priors_and_skills_by_hand():
    found = cs.DawidSkene("em").fit(crowd())
    index = pandas.MultiIndex.from_product([WORKERS, ["cat", "dog"]], names=["worker", "label"])
    right, always = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]
    values = np.concatenate([always if who == "cem" else right for who in WORKERS])
    expected = pandas.DataFrame(values, index=index, columns=["cat", "dog"])
    pandas.testing.assert_frame_equal(found.errors_, expected, atol=1e-6, check_names=True)
    assert found.priors_.round(6).to_dict() == {"cat": 0.5, "dog": 0.5}
    assert (found.priors_.name, found.priors_.index.name) == ("prior", "label")
    assert found.skills_.round(6).to_dict() == {"ann": 1, "bob": 1, "cem": 0.5, "dan": 1, "eve": 1}
    # Twenty labels of probability 1/2, from which a hundred rows follow.
    assert found.loss_history_[-1] == pytest.approx(20 * np.log(0.5) / 100, abs=1e-6)
    assert (np.diff(found.loss_history_) > -1e-9).all()


def test_plausibilities_by_hand(fitted):
    # Votes and α of either label; by either of two classes ranked by five, the odds of who is first.
    alpha = fitted(cs.Dirichlet).fit_.posterior.plausibility.unnamed
    expected = np.where(TRUTH == "cat", 5 + alpha, 1 + alpha) / (5 + 2 * alpha)
    np.testing.assert_allclose(fitted(cs.Dirichlet).probas_["cat"], expected)
    assert fitted(cs.PlackettLuce).probas_.loc["t1", "dog"] == pytest.approx(4 / 5, abs=1e-3)


@each(WITH["errors_"])
def test_errors_are_the_confusion_transposed(estimator, fitted):
    found = fitted(estimator).errors_
    table = fitted(estimator).fit_.confusion().set_index(["annotator", "true_label", "label"])["probability"]
    for (worker, said), row in found.iterrows():
        for true in found.columns:
            assert row[true] == table[worker, true, said]
    np.testing.assert_allclose(found.groupby(level="worker").sum(), 1, rtol=1e-5)


@every
def test_what_a_model_does_not_tell_is_no_attribute(estimator, fitted):
    for name in ("errors_", "priors_", "skills_", "probas_", "loss_history_"):
        assert hasattr(fitted(estimator), name) == (estimator in WITH[name])
    assert not hasattr(fitted(estimator), "betas_")


@each([cs.MPA, cs.PlackettLuce, cs.Dirichlet])
def test_it_says_that_a_model_tells_no_skills(estimator, fitted):
    with pytest.raises(AttributeError, match=f"{estimator.__name__} has no attribute 'skills_': its model or its"):
        fitted(estimator).skills_  # noqa: B018


# ---- options


@every
def test_options_are_those_of_fit_and_of_the_model(estimator):
    calls = (cs.fit, cs.link) if estimator is cs.Linker else (cs.fit,)
    of_calls = {name: one.default for call in calls for name, one in inspect.signature(call).parameters.items()}
    of_model = {one.name: one.default for one in estimator._model.settings.fields()}
    expected = {**of_calls, **of_model, **estimator._other_defaults}
    for name in ("model", "data", "sources", "truth", "read", "settings"):
        expected.pop(name, None)
    if estimator is not cs.Linker:
        del expected["columns"]
    if estimator not in CROWDS:
        del expected["annotator_groups"]
    assert estimator().get_params() == expected
    shown = {name: one.default for name, one in inspect.signature(estimator).parameters.items()}
    assert shown == expected


@every
def test_options_are_stored_as_they_are(estimator):
    given = {name: [name] for name in estimator().get_params()}
    model = estimator(**given)
    assert all(model.get_params(deep=False)[name] is value for name, value in given.items())
    again = estimator()
    assert again.set_params(**given) is again
    assert all(getattr(again, name) is value for name, value in given.items())


@every
def test_a_clone_has_the_options_and_nothing_of_the_fit(estimator, fitted):
    # What `sklearn.base.clone` does of an estimator that only has these two.
    original = fitted(estimator).set_params(seed=3)
    taken = {name: copy.deepcopy(value) for name, value in original.get_params(deep=False).items()}
    clone = type(original)(**taken)
    kept = clone.get_params(deep=False)
    assert all(kept[name] is taken[name] for name in taken)
    assert clone.seed == 3
    assert not [name for name in vars(clone) if name.endswith("_")]
    original.set_params(seed=0)


@every
def test_it_shows_the_options_that_were_given(estimator):
    name = estimator.__name__
    assert repr(estimator()) == f"{name}()"
    assert repr(estimator("nuts", seed=2)) == f"{name}(method='nuts', seed=2)"


@every
@pytest.mark.parametrize("call", [lambda one: one(sed=1), lambda one: one().set_params(sed=1)], ids=["init", "set"])
def test_an_unknown_option_is_answered_with_the_closest(estimator, call):
    with pytest.raises(UnknownName, match=f"'{estimator.__name__}' has no option 'sed'; did you mean 'seed'"):
        call(estimator)


def test_options_reach_the_fit():
    found = cs.MajorityVote(uncertainty="ties", seed=5).fit(crowd())
    assert (found.fit_.seed, found.probas_.loc["t1", "dog"]) == (5, 1.0)
    with pytest.raises(UnsupportedRequest, match="choose one of 'ties', 'shares'"):
        cs.MajorityVote(uncertainty="votes").fit(crowd())


# ---- data


@pytest.mark.parametrize(
    "data",
    [
        crowd("item", "annotator"), crowd("question", "rater"), crowd().to_dict("list"), crowd().to_dict("records"),
        cs.read_annotations(crowd()),
    ],
    ids=["item", "question", "columns", "rows", "annotations"],
)  # fmt: skip
def test_every_source_says_the_same(data, fitted):
    found = cs.MajorityVote().fit(data)
    pandas.testing.assert_frame_equal(found.probas_, fitted(cs.MajorityVote).probas_)
    pandas.testing.assert_series_equal(found.skills_, fitted(cs.MajorityVote).skills_)


def test_a_file_is_read(tmp_path, fitted):
    crowd().to_csv(tmp_path / "crowd.csv", index=False)
    found = cs.MajorityVote().fit_predict(tmp_path / "crowd.csv")
    pandas.testing.assert_series_equal(found, fitted(cs.MajorityVote).labels_)


@pytest.mark.parametrize(
    ("cat", "dog"),
    [(0, 1), (7.5, 8.0), (False, True), (" cat ", "dog"), tuple(pandas.date_range("2026-01-01", periods=2))],
    ids=["whole", "float", "bool", "blanks", "time"],
)
def test_labels_come_back_as_the_values_of_the_data(cat, dog):
    own = {"cat": cat, "dog": dog}
    frame = crowd().assign(label=crowd()["label"].map(own), task=crowd()["task"].str[1:].astype(int))
    model = cs.DawidSkene("em").fit(frame)
    assert model.labels_.tolist() == TRUTH.map(own).tolist()
    assert model.labels_.index.tolist() == list(range(20))
    assert set(model.probas_.columns) == set(model.errors_.columns) == {cat, dog}
    assert (model.probas_.loc[3, dog], model.errors_.loc[("cem", cat), dog]) == pytest.approx((1, 1), abs=1e-6)


def test_values_that_read_as_one_text_are_one_label():
    found = cs.MajorityVote().fit({"task": ["a", "a", "b"], "worker": [1, 2, 1], "label": ["1", 1, 2]})
    assert found.probas_.to_numpy().tolist() == [[1, 0], [0, 1]]


def test_weights_and_gold_labels_count():
    frame = pandas.DataFrame({"task": ["a"] * 3, "worker": list("xyz"), "label": ["no", "no", "yes"]})
    heavy = frame.assign(weight=[1, 1, 3])
    assert cs.MajorityVote().fit_predict_proba(heavy).loc["a"].to_dict() == {"no": 0.4, "yes": 0.6}
    known = frame.assign(gold="perhaps")
    assert cs.MajorityVote().fit_predict(known).tolist() == ["no"]
    assert cs.MajorityVote(gold="use").fit_predict(known).tolist() == ["perhaps"]


@pytest.mark.filterwarnings("ignore:annotators are worse than chance")
@each(WITH["gold"])
def test_true_labels_are_taken_for_true(estimator):
    model = estimator()
    known = {"t0": "dog", "t1": None, "never seen": "cat"}
    found = model.fit_predict_proba(crowd(), true_labels=known)
    assert found.loc["t0", "dog"] == 1
    assert model.labels_.drop("t0").tolist() == TRUTH.drop("t0").tolist()
    assert model.gold == "ignore"
    assert model.fit(crowd(), pandas.Series(known)).labels_["t0"] == "dog"


@each([one for one in ESTIMATORS if one not in WITH["gold"]])
def test_true_labels_of_models_that_take_none_are_refused(estimator):
    with pytest.raises(UnsupportedRequest, match=f"{estimator.__name__} takes no label as known; leave out"):
        estimator().fit(DATA[estimator], {"t0": "dog"})


def test_true_labels_are_found_by_their_values():
    frame = crowd().assign(label=(crowd()["label"] == "dog").astype(int))
    assert cs.MajorityVote().fit_predict(frame, pandas.Series({"t0": 1.0}))["t0"] == 1


@pytest.mark.parametrize(
    ("data", "true_labels", "error", "match"),
    [
        (crowd(worker="who"), None, InputError, "no column 'annotator'; the table has 'task', 'who'"),
        (crowd().drop(columns="label"), None, InputError, "no column 'label'"),
        (crowd().assign(rater="x"), None, InputError, "several columns could be 'annotator': 'worker', 'rater'"),
        (crowd(), {"t0": "bird"}, InputError, "nobody gave this true label to any task"),
        (5, None, WrongKind, "takes Annotations"),
    ],
    ids=["worker", "label", "two", "true", "number"],
)  # fmt: skip
@each(WITH["gold"])
def test_data_that_cannot_be_read_are_refused(estimator, data, true_labels, error, match):
    model = estimator()
    with pytest.raises(error, match=match):
        model.fit(data, true_labels)
    assert not hasattr(model, "fit_")


tables = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from("abc")),
    min_size=1, max_size=20, unique_by=lambda row: row[:2],
)  # fmt: skip


@settings(max_examples=40)
@given(rows=tables)
def test_shares_of_any_votes_are_those_of_crowd_kit(rows):
    frame = pandas.DataFrame(rows, columns=["task", "worker", "label"])
    # As crowd-kit counts. Which label it takes of tied ones depends on the version of pandas; here it is the first.
    counts = frame[["task", "label"]].value_counts().unstack("label", fill_value=0).sort_index(axis=1)
    model = cs.MajorityVote().fit(frame)
    expected = counts.div(counts.sum(axis=1), axis=0).loc[model.probas_.index]
    np.testing.assert_allclose(model.probas_, expected)
    assert model.labels_.tolist() == expected.idxmax(axis="columns").tolist()


# ---- life


@every
def test_before_the_fit_it_says_so(estimator):
    model = estimator()
    for name in ("fit_", "labels_", "loss_history_", *(["probas_", "skills_"] if estimator is not cs.Linker else [])):
        with pytest.raises(AttributeError, match=rf"this {estimator.__name__} is not fitted, and has no {name}; call"):
            getattr(model, name)


def test_scikit_learn_gets_its_own_error(monkeypatch):
    own = types.SimpleNamespace(NotFittedError=type("NotFittedError", (ValueError, AttributeError), {}))
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", own)
    with pytest.raises(own.NotFittedError, match="this MACE is not fitted"):
        cs.MACE().labels_  # noqa: B018


def test_another_fit_leaves_nothing_of_the_first():
    model = cs.MajorityVote().fit(crowd())
    assert len(model.labels_) == len(model.probas_) == 20
    model.fit({"task": ["a"], "worker": ["x"], "label": ["bird"]})
    assert (model.labels_.to_dict(), model.skills_.to_dict()) == ({"a": "bird"}, {"x": 1})
    assert model.probas_.shape == (1, 1)


def test_copies_and_pickles_are_whole(fitted):
    for again in (copy.deepcopy(fitted(cs.MajorityVote)), pickle.loads(pickle.dumps(cs.MajorityVote(seed=4)))):
        assert isinstance(again, cs.MajorityVote)
    assert again.seed == 4
    assert copy.deepcopy(fitted(cs.MajorityVote)).labels_.equals(fitted(cs.MajorityVote).labels_)


def test_nothing_is_imported_of_scikit_learn():
    code = "import sys; sys.modules['sklearn'] = None; import consilience as cs; print(cs.DawidSkene(seed=1))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["DawidSkene(seed=1)"]
