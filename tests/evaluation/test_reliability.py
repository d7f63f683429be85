"""Calibration against gold labels: bins, scores, the exact tail, and what is said of a fit."""

import dataclasses
from itertools import product
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import consilience as cs
from consilience.errors import ConsilienceWarning, DiagnosticWarning, UnknownName, UnsupportedRequest
from consilience.evaluation.reliability import (
    TEN_BINS,
    calibration,
    calibration_score,
    expected_calibration_error,
    reliability_of_pairs,
    reliability_table,
    score_by_gold,
)
from consilience.models import member, names, place
from consilience.models.interface import Measure
from consilience.models.posterior import Draws
from consilience.models.truth import Entries, LabelDraws, LabelProbabilities
from consilience.models.truth import against_gold as module
from consilience.models.truth.against_gold import (
    AgainstGold,
    against_gold,
    calibration_notes,
    headline,
    hits,
    share,
    tail,
)
from consilience.models.truth.truth import Marginals
from consilience.notes import Level

STATED = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)
OF_ANNOTATIONS = [name for name in names() if "Annotations" in place(name).takes]


def compared(certainty, right):
    """Return a comparison of which only certainty and right matter."""
    certainty, right = np.asarray(certainty, float), np.asarray(right, float)
    return AgainstGold(np.arange(len(right)), certainty, right, certainty, certainty)


def stated(probability, gold, use="ignore", **of_truth):
    """Return a fit of stated probabilities ``(item, class)`` beside gold labels."""
    probability = np.asarray(probability, float)
    truth = LabelProbabilities.dense(probability, key=jax.random.key(0), num_draws=50)
    for name, value in of_truth.items():
        setattr(truth, name, value)
    items, classes = probability.shape
    data = cs.Annotations.from_codes(
        np.arange(items), np.zeros(items, int), np.zeros(items, int), gold=gold, num_labels=classes
    )
    resolved = SimpleNamespace(data=data, settings=SimpleNamespace(gold=use))
    return SimpleNamespace(truth=truth, data=data, resolved=resolved)


# ---- the table ----


@given(STATED)
def test_bins_partition_what_is_stated(pairs):
    certainty, right = map(np.array, zip(*pairs, strict=True))
    table = reliability_table(certainty, right)
    assert table["items"].sum() == len(pairs)
    assert (table["items"] > 0).all()
    assert ((table["lower"] <= table["certainty"] + 1e-12) & (table["certainty"] <= table["upper"] + 1e-12)).all()
    assert np.isclose((table["items"] * table["right"]).sum(), right.sum())
    assert ((table["right_lower"] <= table["right"] + 1e-12) & (table["right"] <= table["right_upper"] + 1e-12)).all()
    assert 0 <= expected_calibration_error(table) <= 1


@pytest.mark.parametrize(("certainty", "lower"), [(0.0, 0.0), (0.3, 0.3), (0.6, 0.6), (0.59999, 0.5), (1.0, 0.9)])
def test_a_bin_holds_its_lower_end(certainty, lower):
    assert reliability_table(np.array([certainty]), np.array([True]))["lower"].tolist() == [lower]


def test_intervals_are_wilson():
    """8 of 10, 95 %: .4902 to .9433 (Wilson 1927, as in Brown, Cai and DasGupta 2001)."""
    table = reliability_table(np.full(10, 0.75), np.arange(10) < 8)
    assert table[["right_lower", "right_upper"]].to_numpy()[0] == pytest.approx([0.49016, 0.94332], abs=1e-5)


def test_bins_of_a_calibrated_statement_cover():
    """Of 200 tables of calibrated statements, the intervals hold the mean statement about 95 times of 100."""
    random = np.random.default_rng(1)
    inside = []
    for _ in range(200):
        certainty = random.uniform(0.5, 1, 400)
        table = reliability_table(certainty, random.random(400) < certainty)
        inside += ((table["right_lower"] <= table["certainty"]) & (table["certainty"] <= table["right_upper"])).tolist()
    assert abs(np.mean(inside) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / len(inside))


def test_pairs_of_records_have_bins_of_their_own():
    pairs = np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([0.97, 0.02, 0.5])
    table = reliability_of_pairs(pairs, np.array([0, 0, 1, -1]))
    assert table[["lower", "items", "right"]].to_numpy().tolist() == [[0.0, 1, 0.0], [0.95, 1, 1.0]]


# ---- the tail ----


@pytest.mark.parametrize(
    ("probability", "errors", "expected"),
    [
        (np.full(30, 0.9999), 1, 0.0029957),  # one slip: eighteen standard errors, and nothing extraordinary
        (np.full(5, 0.8), 0, 1.0),
        (np.full(5, 0.8), 6, 0.0),
        (np.ones(5), 1, 0.0),
        (np.full(40, 0.96), 6, stats.binom.sf(5, 40, 0.04)),
        (np.full(800, 0.98804), 57, stats.binom.sf(56, 800, 1 - 0.98804)),  # 1e-24: far tails have their digits
    ],
)
def test_tails_of_hand(probability, errors, expected):
    assert tail(probability, errors) == pytest.approx(expected, rel=1e-4)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(0, 6))
def test_the_tail_is_the_sum_over_all_outcomes(probability, errors):
    total = 0.0
    for wrong in product([False, True], repeat=len(probability)):
        if sum(wrong) >= errors:
            total += np.prod([1 - p if one else p for p, one in zip(probability, wrong, strict=True)])
    assert tail(np.array(probability), errors) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("number", [2_000, 20_000])
def test_the_normal_tail_of_many_items_is_near(monkeypatch, number):
    random = np.random.default_rng(0)
    probability = random.beta(20, 1, number)
    expected = number - probability.sum()
    spread = np.sqrt(np.sum(probability * (1 - probability)))
    for score in (0.0, 1.0, 2.0, 3.1, 4.0):
        errors = int(expected + score * spread)
        exact = tail(probability, errors)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_MOST_ITEMS", 0)
            assert abs(tail(probability, errors) - exact) < 0.02 * exact + 1e-5


# ---- what is said ----


@pytest.mark.parametrize(
    ("certainty", "right", "level", "text"),
    [
        # The worked cases of the rule: 57 of 800 wrong where 9.6 are expected; 2 of 30 where 1.8 are.
        (np.full(800, 0.98804), 743, Level.error, "743 of 800 gold items are right (0.929), 790.4 expected (0.988)"),
        (np.full(30, 1 - 1.767 / 30), 28, None, ""),
        (np.full(30, 0.9999), 29, Level.warning, "29 of 30 gold items are right (0.967), 30.0 expected (1.000)"),
        (np.full(40, 0.96), 34, Level.warning, "34 of 40 gold items are right (0.850), 38.4 expected (0.960)"),
        (np.full(40, 0.96), 35, Level.warning, "35 of 40 gold items are right (0.875)"),
        (np.full(40, 0.86), 39, Level.warning, "certainty 0.860, right 0.975 on 40 gold items: less certain than"),
        (np.full(20, 0.95), 20, None, ""),  # all right: no standard error of what was seen, and no finding either
        (np.full(19, 0.99), 0, None, ""),  # too few
    ],
)  # fmt: skip
def test_what_is_said_of_certainty_beside_gold(certainty, right, level, text):
    said = calibration_notes(compared(certainty, np.arange(len(certainty)) < right))
    assert [note.level for note in said] == ([] if level is None else [level])
    assert all(text in note.words() for note in said)


def test_the_worst_bin_is_told():
    certainty = np.repeat([0.75, 0.92, 0.9995], [10, 30, 60])
    right = np.concatenate([np.arange(10) < 7, np.arange(30) < 15, np.full(60, True)])
    (note,) = calibration_notes(compared(certainty, right))
    assert note.text.endswith("of 30 items stated at 0.9 to 0.95, 15 right, 27.6 expected")


def test_calibrated_statements_are_rarely_called_wrong():
    """Both ways together: 2.5 % above, about 2.3 % below, and the gap on top."""
    random = np.random.default_rng(5)
    said = []
    for _ in range(400):
        certainty = random.uniform(0.5, 1, 100)
        said += [note.level for note in calibration_notes(compared(certainty, random.random(100) < certainty))]
    assert len(said) / 400 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)
    assert said.count(Level.error) / 400 < 0.001 + 5 * np.sqrt(0.001 / 400)


# ---- scores ----


def test_scores_of_hand():
    """Three items: .8 on the gold label, .6 on another one, and one without a gold label."""
    fit = stated([[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.5, 0.4, 0.1]], [0, 0, -1])
    score = calibration_score(fit)
    assert (score.items, score.right, score.dependence, score.fitted_on) == (2, 0.5, 0.0, 0)
    assert score.certainty == pytest.approx(0.7)
    assert score.ece == pytest.approx((0.2 + 0.6) / 2)
    assert score.log_score == pytest.approx(-(np.log(0.8) + np.log(0.3)) / 2)
    assert score.brier == pytest.approx(((0.2**2 + 0.2**2) + (0.7**2 + 0.6**2 + 0.1**2)) / 2)
    assert calibration(fit)["items"].tolist() == [1, 1]


def test_a_gold_label_of_no_probability_costs_as_much_as_one_in_a_million():
    assert calibration_score(stated([[1.0, 0.0]], [1])).log_score == pytest.approx(-np.log(1e-6))


def test_a_gold_label_that_nobody_gave_has_what_is_left():
    entries = Entries(np.array([0, 1, 2]), np.array([0, 1], np.int32), 3)
    fit = stated(np.full((2, 3), 1 / 3), [0, 2])
    fit.truth = LabelProbabilities(entries, np.ones(2), key=jax.random.key(0), num_draws=5)
    found = against_gold(fit.truth, fit.resolved)
    assert (found.of_gold.tolist(), found.right.tolist(), found.loss.tolist()) == ([1, 0], [True, False], [0, 2])


def test_a_tie_is_right_by_its_share():
    """Whichever of its labels has the lowest code; as the vote itself tells its accuracy."""
    counts = [[2, 2, 0], [2, 2, 0], [1, 1, 1], [2, 2, 0], [0, 3, 0]]
    fit = cs.fit("majority-vote", cs.Annotations.from_counts(counts, gold=[0, 1, 2, 2, 1]))
    assert against_gold(fit.truth, fit.resolved).right == pytest.approx([0.5, 0.5, 1 / 3, 0, 1])
    assert fit.calibration_score().right == pytest.approx(fit.table("accuracy")["expected"].item())
    assert hits(30 * fit.calibration_score().right) == "14"


def test_draws_are_scored_by_how_often_each_label_is_drawn():
    fit = stated(np.full((2, 2), 0.5), [0, 1])
    fit.truth = LabelDraws(np.array([[0, 0], [0, 0], [0, 1], [1, 0]]), 2)
    found = against_gold(fit.truth, fit.resolved)
    assert (found.certainty.tolist(), found.of_gold.tolist()) == ([0.75, 0.75], [0.75, 0.25])


@pytest.mark.parametrize("source", ["gold", "default"])
def test_what_taught_the_certainty_does_not_score_it(source):
    """Each item is scored by what is said of it without its own gold label, where gold labels were learned from."""
    codes, probability = np.array([0, 1, 0, 1], np.int32), np.array([0.6, 0.4, 0.3, 0.7])
    apart = Marginals(np.array([0, 2, 4]), codes, probability, np.zeros(2))
    fit = stated(
        [[0.9, 0.1], [0.8, 0.2]], [0, 0], held_out=apart if source == "gold" else None,
        dependence=SimpleNamespace(rho=0.4, source=source, gold_items=2), certainty_if_independent=0.99,
    )  # fmt: skip
    score = calibration_score(fit)
    assert (score.dependence, score.fitted_on) == (0.4, 2 if source == "gold" else 0)
    assert (score.right, score.certainty) == pytest.approx((0.5, 0.65) if source == "gold" else (1.0, 0.85))
    right = "0.500" if source == "gold" else "1.000"
    words = f"certainty 0.850 (under independence 0.990); right {right} of 2 gold items"
    assert headline(fit.truth, fit.resolved) == words


@pytest.mark.parametrize(
    ("gold", "use", "text"),
    [
        (None, "ignore", "no gold labels; give a column 'gold' for some items"),
        ([-1, -1], "ignore", "no gold labels; give a column 'gold'"),
        ([0, -1], "use", "no gold labels are left to compare with, since the fit used them all; gold='ignore'"),
    ],
)
def test_without_gold_labels_there_is_nothing_to_compare(gold, use, text):
    fit = stated([[0.9, 0.1], [0.8, 0.2]], gold, use)
    for ask in (calibration, calibration_score):
        with pytest.raises(UnsupportedRequest) as refused:
            ask(fit)
        assert text in str(refused.value)
    assert headline(fit.truth, fit.resolved) == "certainty 0.850; no gold labels check it"


def test_a_run_that_broke_down_states_nothing():
    fit = stated([[np.nan, np.nan], [0.8, 0.2]], [0, 0])
    with pytest.raises(UnsupportedRequest, match="not finite"):
        calibration_score(fit)


@pytest.mark.parametrize(("value", "words"), [(0.9124, "0.912"), (1.0, "1.000"), (0.0, "0.000"), (0.9996, "1.000")])
def test_shares_have_three_digits(value, words):
    assert share(value) == words


# ---- of fits ----


def crowd(number=40, wrong=0, labels=2, annotators=3):
    """Annotators who all say the same, and gold labels of which some say otherwise."""
    said = np.arange(number) % labels
    gold = np.where(np.arange(number) < wrong, (said + 1) % labels, said)
    item, annotator = np.indices((number, annotators)).reshape(2, -1)
    return cs.Annotations.from_codes(item, annotator, said[item], gold=gold, num_labels=labels)


@pytest.mark.parametrize("name", OF_ANNOTATIONS)
def test_every_fit_of_labels_answers(name):
    assert {"calibration", "calibration_score"} <= {one.name for one in member(name).tables if isinstance(one, Measure)}
    assert "calibration" in member(name).measured_tables
    fit = cs.fit(name, crowd(), progress=False)
    assert fit.calibration_score().right == 1
    assert list(fit.calibration()) == list(fit.table("calibration")) == [
        column.name for table in member(name).tables if table.name == "calibration" for column in table.columns
    ]
    assert fit.table("calibration")["items"].sum() == 40
    words = f"certainty {share(fit.labels()['certainty'].mean())}"
    # What is tempered is never shown alone.
    if "dependence" in {field.name for field in member(name).settings.fields()}:
        words += f" (under independence {share(fit.truth.certainty_if_independent)})"
    assert repr(fit).splitlines()[0] == fit.headline == f"{words}; right 1.000 of 40 gold items"


def test_mentions_are_compared_with_antecedent_and_all():
    rows = {
        "mention_id": ["m1", "m1", "m2", "m2", "m3", "m3"], "annotator_id": ["a", "b"] * 3,
        "annotation": ["DN", "DN", "DO(m1)", "DO(m1)", "DO(m1)", "DO(m1)"],
        "gold": ["DN", "DN", "DO(m1)", "DO(m1)", "DO(m2)", "DO(m2)"],
    }  # fmt: skip
    for name, own in (("majority-vote", {}), ("mpa", {"coreference": "links"})):
        score = cs.fit(name, cs.read_mentions(rows), progress=False, **own).calibration_score()
        assert (score.items, score.right) == (3, pytest.approx(2 / 3))


def test_a_fit_that_is_too_sure_warns_and_one_that_used_the_labels_does_not():
    with pytest.warns(DiagnosticWarning, match="the stated probabilities are too high: 30 of 40 gold items"):
        fit = cs.fit("majority-vote", crowd(wrong=10))
    vote = [(Level.note, "a vote does not say how sure it is")]
    found, *rest = fit.findings()
    assert found.level is Level.error
    assert [(note.level, str(note)[:34]) for note in rest] == vote
    used = cs.fit("majority-vote", crowd(wrong=10), gold="use")
    assert [(note.level, str(note)[:34]) for note in used.findings()] == vote
    with pytest.raises(UnsupportedRequest, match="the fit used them all"):
        used.calibration()
    split = cs.Annotations.from_counts(np.tile([[2, 1], [1, 2]], (20, 1)), gold=np.tile([0, 1], 20))
    with pytest.warns(ConsilienceWarning, match="less certain than right"):
        cs.fit("majority-vote", split, uncertainty="shares")


def test_a_name_that_is_no_table_is_told_with_those_that_are():
    with pytest.raises(UnknownName, match="calibration"):
        cs.fit("majority-vote", crowd()).table("calibrations")


@pytest.mark.filterwarnings("ignore:few effective draws")
def test_a_fit_without_draws_has_no_headline():
    fit = cs.fit("dawid-skene", crowd(), method="gibbs", draws=5, chains=1, warmup=0, progress=False)
    empty = Draws({name: draws[:, :0] for name, draws in fit.posterior.chains.items()})
    assert dataclasses.replace(fit, posterior=empty, said=()).headline == ""


def test_systems_are_scored_by_the_gold_labels_alone():
    data = crowd(10, wrong=2)
    systems = {"as said": cs.Predictions.from_lists([[str(one)] for one in np.arange(10) % 2], classes=["0", "1"])}
    named = cs.read_annotations({
        "item": data.item, "annotator": data.annotator, "label": data.label,
        "gold": np.where(data.item < 5, data.gold[data.item].astype(str), ""),
    })  # fmt: skip
    fit = cs.fit("majority-vote", named)
    found = score_by_gold(fit, systems, "top-1")["as said"]
    assert (found.value, found.items) == (0.6, 5)
    assert found.spread == pytest.approx(np.sqrt(0.6 * 0.4 / 5 * 0.5))
    assert len(TEN_BINS) == 11
