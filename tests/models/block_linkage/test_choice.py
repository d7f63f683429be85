"""The likelihood that EM takes where none is asked for, and what it says of the other one."""

import functools
import re
import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.errors import ConsilienceWarning
from consilience.models.block_linkage import _kept, choice
from consilience.models.block_linkage.likelihoods import HitMiss
from consilience.models.block_linkage.similar import for_data

pytestmark = pytest.mark.usefixtures("number_by_em")

SIMULATION = {"num_values": (300, 400, 90, 12, 28), "size_share": (0.8, 0.2), "distortion": 0.05, "seed": 1}
ONE_ERROR = {"errors": "one"}


def fit_of(records, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return cs.fit("block-linkage", records, method="em", draws=10, **options)


@functools.cache
def records_of_kind(number=2500, **kind):
    return cs.simulate_records(number, **{**SIMULATION, **kind})


def notes_of(fitted):
    return [note for note in fitted.findings() if re.search(r"the likelihood .* was taken|\(likelihood ", note.text)]


def test_hit_miss_is_taken_as_it_is_where_it_holds():
    fitted = fit_of(records_of_kind())
    own = fit_of(records_of_kind(), likelihood="hit-miss")
    assert fitted.posterior.disagreement < choice.SMALL
    assert fitted.posterior.tried.shape == (0, 3)
    np.testing.assert_array_equal(fitted.elbo, own.elbo)
    (note,) = notes_of(fitted)
    assert note.text.startswith("errors in the fields of a record were taken as independent (likelihood hit-miss)")
    assert not notes_of(own)


def test_error_classes_are_taken_where_every_duplicate_has_one_error():
    fitted = fit_of(records_of_kind(**ONE_ERROR))
    own, hit_miss = (
        fit_of(records_of_kind(**ONE_ERROR), likelihood=name) for name in ("error-classes", "hit-miss")
    )
    (evidence, disagreement, number), (of_classes, own_disagreement, own_number) = fitted.posterior.tried
    assert len(fitted.posterior.class_share) == 3
    assert of_classes - evidence > choice.LEAST_GAIN * fitted.posterior.differing[0].sum()
    assert own_disagreement < 0.1 < disagreement
    # On the same candidates as hit-miss, what they learn is what they learn on their own.
    assert abs(own.num_entities().value - fitted.num_entities().value) < own.num_entities().sd
    np.testing.assert_allclose(fitted.posterior.class_share, own.posterior.class_share, atol=0.02)
    assert abs(number - hit_miss.num_entities().value) < hit_miss.num_entities().sd
    assert abs(own_number - fitted.num_entities().value) < fitted.num_entities().sd
    (note,) = notes_of(fitted)
    assert note.text.startswith("the likelihood error-classes was taken: its log evidence is ")
    assert note.text.endswith(f"by hit-miss there would be {number:,.0f} entities")
    said = f"(Laplace's method after EM; error classes; by hit-miss, which does not hold, {number:,.0f})"
    assert said in repr(fitted.num_entities())


MOVES = {"moves": 0.3, "moving_fields": ("field_3", "field_4")}


@pytest.mark.parametrize("kind", [{"distortion": 0.2}, {"missing": 0.2}, MOVES])
def test_hit_miss_stays_where_error_classes_gain_little(kind, monkeypatch):
    """Where errors are independent and many, and where people move, which neither of the two expects."""
    monkeypatch.setattr(choice, "SMALL", 0.0)
    fitted = fit_of(records_of_kind(**kind))
    (evidence, disagreement, _), (own_evidence, own_disagreement, _) = fitted.posterior.tried
    links = fitted.posterior.differing[0].sum()
    assert own_evidence - evidence < choice.LEAST_GAIN * links or own_disagreement > disagreement
    assert not len(fitted.posterior.class_share)
    np.testing.assert_array_equal(fitted.elbo, fit_of(records_of_kind(**kind), likelihood="hit-miss").elbo)
    (note,) = notes_of(fitted)
    assert note.text.startswith("the likelihood hit-miss was taken, because error-classes ")
    assert (fitted.num_entities().doubt != "") == (disagreement > 0.1)
    assert "by error-classes there would be" in note.text


def test_nothing_else_is_tried_where_links_are_few_or_fields_are_similar():
    few = fit_of(records_of_kind(200, **ONE_ERROR))
    assert few.posterior.differing[0].sum() < 50
    assert len(few.posterior.tried) == 0
    near = {"name": ["ann", "anne", "bob", "cid"] * 3, "id": range(12), "town": ["ulm", "ulm", "bonn", "bonn"] * 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        assert len(cs.link(near, similar={"name": "number"}, method="em").posterior.tried) == 0


def test_hit_miss_is_what_it_begins_with():
    assert type(for_data("auto", records_of_kind(60), np.zeros(0))) is HitMiss


@pytest.mark.parametrize(
    ("own", "rest", "why"),
    [
        ((0, 0.18, 90), (162.5, 0.03, 80), "fit the linked records better (disagreement 0.03 against 0.18 on a scale "
         "to 1), but gain only 162.5 in log evidence: less than 0.4 for each expected link"),
        ((0, 0.07, 90), (500, 0.08, 80), "fit the linked records no better (disagreement 0.08 against 0.07 on a scale "
         "to 1), although their log evidence is 500.0 higher"),
        ((10, 0.18, 90), (0, 0.03, 80), "have a log evidence that is 10.0 lower, though they fit"),
        ((10, 0.07, 90), (0, 0.08, 80), "have a log evidence that is 10.0 lower, and they fit the linked records no "),
    ],
)  # fmt: skip
def test_the_note_says_why_hit_miss_was_kept(own, rest, why):
    text = _kept(np.array(own), np.array(rest))
    assert text.startswith(f"the likelihood hit-miss was taken, because error-classes {why}")
    assert text.endswith("; by error-classes there would be 80 entities")
