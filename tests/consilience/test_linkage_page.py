"""The page of linked records: its tiles, findings and next steps say what was computed."""

import dataclasses

import numpy as np
import pytest

import consilience as cs
from consilience.models import block_linkage
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.weights import learned
from consilience.pages.linkage import (
    _actions,
    _by_threshold,
    _seen_of_draws,
    _shares_of_draws,
    _thresholds,
    linkage_page,
)
from consilience.pages.record_pairs import _signed, review_list
from consilience.printing import percent

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


def linked(num_files=2, **settings):
    """Link simulated records, of one file or two."""
    records = cs.simulate_records(200, num_files=num_files, seed=5).replace(entity=None)
    return cs.fit("block-linkage", records, draws=50, **settings)


@pytest.fixture(scope="module")
def fit():
    return linked()


def page_of(fit):
    return linkage_page(fit, {}, metric=None, risk=None, singletons=True, provenance=None, text=None)


def test_the_tile_of_entities_is_a_mean_and_says_what_is_written(fit):
    count = cs.num_entities(fit)
    low, high = count.interval
    name, value = next(iter(page_of(fit).numbers.items()))
    written = len(np.unique(fit.truth.estimate()))
    assert (value, written) == (f"{count.value:.0f}", count.point)
    assert f"{written}" != value
    spread = f"{low:.0f} to {high:.0f}, 95 %"
    assert name == f"entities in the mean of draws ({spread}); the estimate that is written has {written}"


@pytest.mark.parametrize(
    ("num_files", "settings", "told"),
    [(2, {}, True), (2, {"restriction": "across"}, False), (2, {"restriction": "within"}, False), (1, {}, False)],
)
def test_links_within_a_file_are_counted_where_both_may_be(num_files, settings, told):
    one = linked(num_files, **settings)
    entity, source = fit_codes(one)
    first, second = np.triu_indices(len(entity), 1)
    together = entity[first] == entity[second]
    within = int((together & (source[first] == source[second])).sum())
    said = f" Links between two files: {together.sum() - within}; links within one file: {within}."
    assert any(text.endswith(said) for text in page_of(one).findings) == told
    offered = [action.command for action in _actions(one) if action.words.startswith("If no file has an entity")]
    assert offered == ["consilience link FILES --restriction across -o linked-across"] * told
    assert len(page_of(one).findings) <= 4


def fit_codes(fit):
    """Return the entity and the file of each record."""
    return np.asarray(fit.truth.estimate()), np.asarray(fit.data.source)


def test_intervals_of_links_among_those_looked_at_are_those_of_the_draws(fit):
    pairs, partitions = fit.truth.pairs(), fit.truth.counted().partitions
    clusters = partitions.clusters(slice(None))
    first, second = np.triu_indices(fit.data.num_records, 1)
    estimate = fit.truth.estimate()
    made, every, seen = [], [], []
    for own in clusters:
        together = own[first] == own[second]
        made.append((together & (estimate[first] == estimate[second])).sum())
        every.append(together.sum())
        seen.append((own[pairs.first] == own[pairs.second]).sum())
    shares = np.array(made) / seen, np.array(seen) / every
    assert partitions is not fit.truth
    found = [(share.mean(), *np.quantile(share, [0.025, 0.975])) for share in shares]
    np.testing.assert_allclose(_seen_of_draws(fit), found)


def test_a_share_and_its_interval_are_of_the_same_draws(fit):
    """Tiles, the finding and the table of thresholds: none has the interval of draws and the value of another run."""
    (mean, low, high), (of_all, *_) = _shares_of_draws(fit)
    tiles = {name.split(" (")[0]: value for name, value in page_of(fit).numbers.items()}
    assert tiles["of the links are correct, expected by the model's draws"] == percent(mean)
    assert tiles["of all links are found, expected by the model's draws"] == percent(of_all)
    assert page_of(fit).findings[0].startswith(f"The model expects {percent(mean)} of ")
    pairs, cuts = fit.truth.pairs(), np.array([0.2, 0.5, 0.9])
    own = fit.truth.counted().partitions.clusters(slice(None))
    together = own[:, pairs.first] == own[:, pairs.second]
    right = [together[:, pairs.probability >= cut].mean(axis=1) for cut in cuts]
    found = _by_threshold(fit, cuts)
    np.testing.assert_allclose(found["precision"], [share.mean() for share in right])
    np.testing.assert_allclose(found["precision_lower"], [np.quantile(share, 0.025) for share in right])


@pytest.mark.parametrize(("value", "text"), [(-0.004, "0.00"), (0.0, "0.00"), (0.006, "+0.01"), (-1.234, "−1.23")])
def test_log_odds_of_nothing_have_no_sign(value, text):
    assert _signed(value) == text


def test_the_threshold_in_the_headline_is_the_even_one(fit):
    table = fit.thresholds().set_index("threshold")
    drawn = _by_threshold(fit, np.array([0.5]))
    right, found = (percent(drawn[name][0]) for name in ("precision", "recall"))
    assert _thresholds(fit).gist.startswith(f"above 0.5, {right} right and {found} found, of the links")
    assert (table["precision"] + table["recall"]).idxmax() != 0.5  # else the test tells nothing


@pytest.mark.parametrize(
    ("fields", "words", "flags"),
    [
        ("last (category), born (date)", "texts and dates", "last=string,born=date"),
        ("last (category), age (number)", "texts", "last=string"),
        ("born (date)", "dates", "born=date"),
        ("age (number)", "", ""),
    ],
)
def test_fields_that_may_be_nearly_equal_are_named(fit, fields, words, flags):
    one = dataclasses.replace(fit, attributes=fit.attributes | {"fields": fields})
    found = [action for action in _actions(one) if "--similar" in action.command]
    assert [action.words.split(" by similarity")[0] for action in found] == [f"Compare {words}"] * bool(flags)
    assert all(f"--similar {flags} " in action.command for action in found)


@pytest.mark.parametrize(("corrected", "said"), [(157.3, "about 0.7"), (157.98, "hardly any")])
def test_links_that_are_no_candidates_are_said_as_links(fit, corrected, said, monkeypatch):
    monkeypatch.setattr(block_linkage, "expected_clusters", lambda posterior: (158.0, corrected))
    monkeypatch.setattr(Linkage, "tells_hidden", lambda posterior: True)
    words = block_linkage._left_out_in_words(Linkage.of(fit.posterior), fit.data)
    assert words.endswith(f"the pairs compared; among the others {said} more links are expected")


def test_log_odds_begin_where_no_third_record_is(fit):
    """A cluster of s records weighs m s! μ_s: of three records, their five partitions."""
    assert "before their fields are compared, if neither belongs with a third one" in " ".join(
        block for block in review_list(fit).blocks if isinstance(block, str)
    )
    begun = fit.explain(*fit.data.records[:2])["log_odds"].iloc[0]
    parameters, _ = learned(fit.posterior, fit.resolved)
    one, two, three = parameters.intensity * np.array([1, 2, 6]) * parameters.size_share[:3]
    np.testing.assert_allclose(begun, np.log(two * one / one**3))  # neither is with the third
    assert begun != pytest.approx(np.log((two * one + three) / (one**3 + 2 * two * one)), abs=1e-3)


def test_probabilities_of_the_review_list_are_not_rounded_to_certainty(fit):
    frame = next(block.frame for block in review_list(fit).blocks if hasattr(block, "frame"))
    assert not {"1.00", "0.00"} & set(frame["probability"])


@pytest.mark.parametrize(
    ("seen", "predicted", "said"),
    [
        ([47, 14, 0.1], [0.76, 0.23, 0.01],
         "23.1 % of them in one or more (predicted 24.0 %), 0.2 % in two or more (1.0 %). That is weak evidence: of 61 "
         "links only 0.6 were expected to differ in several fields"),
        ([700, 200, 100], [0.7, 0.2, 0.1],
         "30.0 % of them in one or more (predicted 30.0 %), 10.0 % in two or more (10.0 %). That is weak evidence: "
         "pairs that differ in several fields are seldom linked"),
    ],
)  # fmt: skip
def test_why_errors_are_taken_as_independent_says_what_was_counted(seen, predicted, said):
    assert block_linkage._no_cause(np.array([seen, predicted])).endswith(said)
