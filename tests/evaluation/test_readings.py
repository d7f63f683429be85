"""Readings of systems: what provenance makes of an interval and of a ranking, by hand and through `compare`."""

import dataclasses

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations, Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.comparison import TOO_NARROW
from consilience.evaluation.readings import Readings, range_text, told
from consilience.models.truth import LabelDraws, LabelProbabilities

CLASSES = list("abc")
# Two systems: alone the first is better, with an own look the second; the first one's own look is .7 at most.
VALUES = np.array([[0.6, 0.5], [0.65, 0.8], [0.7, 0.9]])
DRAWS = VALUES[:, :, None] + np.array([-0.01, 0.01, 0.01, -0.01])


def top(codes, classes=CLASSES):
    return Predictions.from_lists([[classes[code]] for code in codes], classes=classes)


@pytest.mark.parametrize(
    ("words", "value", "lower", "upper", "best"),
    [
        (("annotations", "annotations"), (0.6, 0.5), (0.59, 0.49), (0.61, 0.51), ((1, 1), (0, 0))),
        (("independent", "independent"), (0.675, 0.85), (0.64, 0.79), (0.71, 0.91), ((0, 0), (1, 1))),
        (("annotations", "independent"), (0.6, 0.85), (0.59, 0.79), (0.61, 0.91), ((0, 0), (1, 1))),
        (("unknown", "unknown"), (0.65, 0.7), (0.59, 0.49), (0.71, 0.91), ((0, 1), (0, 1))),
        (("unknown", "annotations"), (0.65, 0.5), (0.59, 0.49), (0.71, 0.51), ((1, 1), (0, 0))),
        (("mixed", "mixed"), (0.65, 0.7), (0.59, 0.49), (0.71, 0.91), ((0, 1), (0, 1))),
    ],
)  # fmt: skip
def test_readings_by_hand(words, value, lower, upper, best):
    readings = Readings(VALUES, DRAWS, words)
    np.testing.assert_allclose(readings.value, value)
    for found, expected in zip(readings.interval(0.999), (lower, upper), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(np.transpose(readings.p_best()[:2]), best)


def test_mixed_systems_are_compared_at_their_extremes_and_unknown_ones_in_common():
    """Under one reading for both the differences are -.1 to .2; of mixed systems .5 - .7 and .9 - .6."""
    unknown, mixed = (
        Readings(VALUES, DRAWS, (word, word)).differences(1, 0).mean(axis=1) for word in ("unknown", "mixed")
    )
    assert sorted(unknown.round(6)) == [-0.1, 0.15, 0.2]
    assert sorted(mixed.round(6)) == [-0.2, 0.3]


def test_what_is_told_of_a_probability():
    assert range_text(0.2, 0.24) == "0.22"
    assert range_text(0.2, 0.3) == "0.20–0.30"
    assert range_text(0.0, 1.0) == "< 0.01 to > 0.99"
    assert range_text(0.68, 1.0, draws=100.0) == "0.68 to > 0.97"
    assert range_text(0.0, 0.08, draws=30.0) == "< 0.10"
    assert range_text(0.2, 0.24, 1) == "0.2"
    assert range_text(np.nan, np.nan) == "-"
    assert [range_text(share, share, 2, draws=100.0) for share in (1.0, 0.0, 0.96)] == ["> 0.97", "< 0.03", "0.96"]
    assert np.isnan(told(np.array([0.1, 0.2]), np.array([0.14, 0.3]))).tolist() == [False, True]


def test_p_best_is_no_surer_than_its_effective_draws():
    """Draws that each stand five times, one after another, are worth as many as they were before."""
    random = np.random.default_rng(0)
    drawn = random.normal(size=(2, 100)) + np.array([[5.0], [-5.0]])
    texts = []
    for times in (1, 5):
        draws = np.repeat(drawn, times, axis=1)
        ranked = cs.Comparison(
            systems=("a", "b"), title="score", values=draws.mean(axis=1), draws=draws, truth_draws=draws,
            item_draws=draws, points=None, num_items=10,
        )  # fmt: skip
        assert ranked.effective_draws == pytest.approx(100, rel=0.35)
        texts.append(float(ranked.p_best_texts[0].removeprefix("> ")))
    assert texts == pytest.approx([0.97, 0.97], abs=0.015)


@pytest.fixture(scope="module")
def ambiguous():
    """The truth itself, and the majority of five labels of ambiguous items."""
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.full(3, 0.7), 1000)
    votes = np.array([random.multinomial(5, own) for own in shares])
    fit = cs.fit("dirichlet", Annotations.from_counts(votes, labels=CLASSES), alpha=0.7, draws=500)
    vote = (votes + random.random(votes.shape) / 2).argmax(axis=1)
    return fit, {"truth": top(shares.argmax(axis=1)), "majority": top(vote)}


def test_the_truth_is_first_where_it_is_said_to_have_looked(ambiguous):
    fit, systems = ambiguous
    stated = cs.compare(fit, systems, provenance={"truth": "independent", "majority": "annotations"})
    assert stated.table["system"].tolist() == ["truth", "majority"]
    assert stated.table["p_best"][0] > 0.95
    assert stated.notes == (TOO_NARROW,)  # counts do not tell who errs again
    alone = cs.compare(fit, systems, provenance="annotations").table.set_index("system")
    assert alone.loc["majority", "p_best"] > 0.95
    assert (alone["value"] == alone["value_alone"]).all()
    assert alone["value_own_look"].isna().all()


def test_the_ranking_is_a_range_where_nobody_knows(ambiguous):
    fit, systems = ambiguous
    ranked = cs.compare(fit, systems)
    table = ranked.table.set_index("system")
    assert table["p_best"].isna().all()
    assert table.loc["truth", "p_best_lower"] < 0.05
    assert table.loc["truth", "p_best_upper"] > 0.95
    # The majority follows the labels, which shows; the truth does not.
    assert table["provenance"].to_dict() == {"truth": "unknown", "majority": "annotations"}
    assert "The annotations do not show whether" in ranked.notes[0]
    assert "“majority” follows the annotators more closely" in ranked.notes[1]
    assert "< 0.01 to > 0.99" in repr(ranked)
    np.testing.assert_array_equal(ranked.values, cs.compare(fit, systems, provenance="annotations").values)


def test_systems_of_one_kind_are_closer_than_where_each_is_of_its_own(ambiguous):
    fit, systems = ambiguous
    both = {name: systems["truth"] for name in ("one", "other")}
    ranked, mixed = (cs.compare(fit, both, provenance=word) for word in ("unknown", "mixed"))
    ends = ["p_best_lower", "p_best_upper"]
    # One that looked beats one that did not; where both are of one kind they are the same.
    assert (np.diff(mixed.table[ends]) > 0.9).all()
    assert (np.diff(ranked.table[ends]) < 0.1).all()


def test_a_copy_that_is_stated_independent_stays_so_and_is_named(ambiguous):
    fit, systems = ambiguous
    ranked = cs.compare(fit, {"majority": systems["majority"]}, provenance="independent")
    assert ranked.provenance == ("independent",)
    assert "it counts as independent, as stated" in ranked.notes[0]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"provenance": "guessed"}, "'guessed'; give annotations, independent, unknown or mixed"),
        ({"provenance": {"other": "unknown"}}, "of other, which is no system here"),
        ({"provenance": "independent", "metric": "top-2"}, "own look is counted for top-1 only"),
        ({"level": 1.5}, "level is 1.5"),
        ({"gold": "use"}, "no gold labels could check these systems"),
    ],
)  # fmt: skip
def test_what_provenance_cannot_be(ambiguous, options, match):
    with pytest.raises(UnsupportedRequest, match=match):
        cs.compare(*ambiguous, **options)


def test_other_metrics_have_the_first_reading_and_say_so(ambiguous):
    ranked = cs.compare(*ambiguous, metric="top-2")
    assert ranked.own_draws is None
    assert "as if they were made from these annotations" in ranked.notes[0]
    assert not cs.compare(*ambiguous, metric="top-2", provenance="annotations").notes


def test_a_truth_that_is_known_has_one_reading():
    truth = LabelDraws(np.zeros((1, 30), int), 3)
    assert not cs.compare(truth, {"x": top(np.zeros(30, int), list("012"))}).notes


def test_levels_of_intervals(ambiguous):
    found = [cs.compare(*ambiguous, level=level) for level in (0.95, 0.5)]
    for wide, narrow in ([one.table for one in found], [one.pairs for one in found]):
        assert (wide["upper"] > narrow["upper"]).all()
        assert (wide["lower"] < narrow["lower"]).all()


# ---- crowds ----


@pytest.fixture(scope="module")
def crowd():
    random = np.random.default_rng(3)
    truth = random.integers(0, 3, 150)
    right = random.random((5, 150)) < 0.75
    said = np.where(right, truth, random.integers(0, 3, (5, 150)))
    gold = np.where(np.arange(150) < 40, truth, -1)
    data = Annotations.from_codes(
        np.tile(np.arange(150), 5), np.repeat(np.arange(5), 150), said.ravel(), labels=CLASSES, gold=gold
    )  # fmt: skip
    system = np.where(random.random(150) < 0.8, truth, random.integers(0, 3, 150))
    return cs.fit("dawid-skene", data, gold="ignore"), {"system": top(system)}, (system == truth).mean()


def test_how_annotators_err_together_is_in_the_intervals(crowd):
    data, systems = dataclasses.replace(crowd[0].data, gold=None), crowd[1]
    found = cs.compare(cs.fit("dawid-skene", data), systems, provenance="annotations")
    known = cs.fit("dawid-skene", data, dependence=0.3)
    same = cs.compare(known, systems, provenance="annotations")
    np.testing.assert_allclose(found.values, same.values)
    assert found.table["sd"][0] > 1.2 * same.table["sd"][0]
    assert found.table["sd_shared"][0] > 0.01
    assert same.table["sd_shared"][0] == 0
    assert "dependence 0.30, 95 % from 0.14 to 0.66" in found.notes[0]
    # One standard deviation up is what a fit with that rho has; draws are interpolated between these.
    further = cs.fit("dawid-skene", data, dependence=0.3 * np.exp(0.4))
    moved = cs.compare(further, systems, provenance="annotations").values - same.values
    below = np.quantile(found.shared_draws[0], 0.1587)
    assert below == pytest.approx(moved[0], rel=0.15)


def test_an_own_look_at_the_items_of_a_crowd_is_a_fit_with_one_more_annotator(crowd):
    fit, systems, right = crowd
    ranked = cs.compare(fit, systems, provenance="independent")
    table = ranked.table.iloc[0]
    assert table["lower"] < right < table["upper"]
    assert table["value"] > table["value_alone"]
    # The second reading holds the annotators' errors fixed; with the labels of a truth alone there is no other.
    unknown = cs.compare(fit.truth, systems, provenance="independent")
    assert any("there is no fit" in note for note in unknown.notes)
    np.testing.assert_allclose(unknown.own_draws[1], ranked.own_draws[1])
    assert not np.allclose(ranked.own_draws[0], ranked.own_draws[1])


def test_some_items_of_a_crowd_are_enough_for_an_own_look(crowd):
    fit, systems, _ = crowd
    codes = np.asarray(systems["system"].ranked)[100:, 0]
    last = Predictions.from_lists([[CLASSES[code]] for code in codes], classes=CLASSES, items=fit.data.items[100:])
    ranked = cs.compare(fit, {"one": last, "two": last}, provenance="independent", missing="drop")
    assert ranked.num_items == 50
    assert any("unpaired" in note for note in ranked.notes)


def test_whoever_is_right_is_no_copy_of_annotators_who_err_independently():
    """Against labels that are tempered for errors in common, all that is right seems to follow the annotators."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 400)
    said = np.where(random.random((4, 400)) < 0.8, truth, 1 - truth)
    data = Annotations.from_codes(
        np.tile(np.arange(400), 4), np.repeat(np.arange(4), 400), said.ravel(), labels=CLASSES[:2]
    )  # fmt: skip
    fit = cs.fit("dawid-skene", data)
    ranked = cs.compare(fit, {"truth": top(truth, CLASSES[:2]), "labels": top(fit.truth.estimate(), CLASSES[:2])})
    assert ranked.provenance == ("unknown", "annotations")


def test_scores_that_dependence_leaves_alone_say_so(crowd):
    data, systems = dataclasses.replace(crowd[0].data, gold=None), crowd[1]
    notes = cs.compare(cs.fit("dawid-skene", data), systems, "set-1", provenance="annotations").notes
    assert "not in these intervals" in notes[0]


def test_gold_labels_end_the_guessing(crowd):
    fit, systems, right = crowd
    ranked = cs.compare(fit, systems, gold="use")
    table = ranked.table.iloc[0]
    assert table["lower"] < right < table["upper"]
    assert ranked.title == "top-1 accuracy, anchored on 40 gold items"
    assert ranked.provenance == ("any",)
    alone = cs.compare(fit, systems, provenance="annotations")
    np.testing.assert_allclose(table["value_alone"], alone.values)
    assert any(note.startswith("The scores are as precise as") for note in ranked.notes)
    with pytest.raises(UnsupportedRequest, match="the fit has seen the gold"):
        cs.compare(cs.fit("dawid-skene", fit.data, gold="use"), systems, gold="use")


def test_verdicts_bring_their_systems():
    random = np.random.default_rng(0)
    verdicts = {
        "item": np.tile(np.arange(60), 2), "system": np.repeat(["x", "y"], 60), "annotator": ["judge"] * 120,
        "label": np.where(random.random(120) < 0.7, "right", "wrong"),
    }  # fmt: skip
    alone = cs.compare(cs.read_verdicts(verdicts))
    assert alone.table["p_best"].isna().all()
    assert "as the judges see it" in alone.title
    gold = {**verdicts, "gold": np.where(np.tile(np.arange(60), 2) < 30, "right", None)}
    anchored = cs.compare(cs.read_verdicts(gold))
    assert anchored.table["p_best"].sum() == pytest.approx(1)
    assert "anchored on 30 gold items" in anchored.title
    assert cs.compare(cs.read_verdicts(gold), gold="ignore").title == alone.title


def test_independent_labels_share_nothing():
    probability = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    truth = LabelProbabilities.dense(probability, key=jax.random.key(0), num_draws=200)
    ranked = cs.compare(truth, {"x": top(probability.argmax(axis=1), list("012"))}, provenance="annotations")
    np.testing.assert_array_equal(ranked.draws, ranked.item_draws)
