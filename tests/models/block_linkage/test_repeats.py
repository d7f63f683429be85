"""What repeats too little or too much: nearly unique fields, records that are the same in everything, no links."""

import dataclasses

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.errors import DiagnosticWarning
from consilience.models import block_linkage
from consilience.models.block_linkage.join import prior_log_odds
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.repeats import alike_apart, repeats_by_chance
from consilience.models.block_linkage.starting import starting_parameters
from consilience.models.interface import Account
from consilience.models.posterior import Draws

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")

HIT_MISS = LIKELIHOODS["hit-miss"]


def with_column(records, codes):
    """Return records with one more field."""
    names, codes = np.unique(codes, return_inverse=True)
    return dataclasses.replace(
        records,
        value=np.append(records.value, codes[None].astype(np.int32), axis=0),
        first_value=np.append(records.first_value, np.int32(records.num_values + len(names))),
        num_fields=records.num_fields + 1,
        num_values=records.num_values + len(names),
    )


def note(number, seed=0):
    """Return a column of which one value in twenty repeats, by chance."""
    generator = np.random.default_rng(seed)
    codes = np.arange(number)
    codes[: number // 20] = generator.integers(number // 20, number, number // 20)
    return generator.permutation(codes)


def test_a_note_repeats_by_chance_and_a_number_of_insurance_does_not(simulate):
    records = simulate(600, numbers=(60, 80, 12), exponents=(0, 0, 0), size_share=(0.9, 0.1))
    noted = with_column(records, note(records.num_records))
    assert repeats_by_chance(noted).tolist() == [False, False, False, True]
    # As unique as the note, but the records that share a number are of the same entity.
    assert len(np.unique(records.entity)) > 0.8 * records.num_records
    assert not repeats_by_chance(with_column(records, records.entity)).any()


def test_a_note_that_is_compared_takes_no_link(simulate, fit_em):
    records = simulate(600, numbers=(60, 80, 12), exponents=(0, 0, 0), size_share=(0.75, 0.25))
    with_note = with_column(records, note(records.num_records))
    plain, noted = fit_em(records), fit_em(with_note)
    assert starting_parameters(with_note, 6).distortion.tolist() == [0.05, 0.05, 0.05, 0.5]
    assert noted.distortion[-1] > 0.8
    before, after = (np.bincount(one.groups()[0].partition.argmax(axis=1))[1:].sum() for one in (plain, noted))
    assert abs(before - after) < 5 * np.sqrt(before * 0.1)  # at most chance agreement on the note moves a link


@pytest.mark.parametrize(("restriction", "pairs"), [("none", 40 * 39 / 2), ("across", 400), ("within", 380)])
def test_equal_records_of_common_values_are_counted(make_records, restriction, pairs):
    value = np.zeros((1, 100), int)
    value[0, 40:] = np.arange(1, 61)
    records = make_records(value, source=np.arange(100) % 2)
    parameters = starting_parameters(records, 6)
    # Of the 40 equal ones alone, the log odds are below the threshold and not far below.
    log_odds = prior_log_odds(parameters) + np.log(0.95**2 / 0.4 + 1 - 0.95**2)
    given = (records, parameters, HIT_MISS, prior_log_odds(parameters))
    found = alike_apart(*given, -log_odds - 1e-6, restriction)
    assert (found.records, found.pairs) == (40, pairs)
    assert found.weight == pytest.approx(pairs / (1 + np.exp(-log_odds)))
    assert alike_apart(*given, -log_odds + 1e-6, restriction) == (0, 0, 0.0)


def test_a_thousand_equal_records_are_told(simulate):
    records = simulate(1_500, numbers=(300, 400, 12), exponents=(0, 0, 0))
    value = records.value.copy()
    value[:, :400] = 0
    fitted = cs.fit("block-linkage", dataclasses.replace(records, value=value), draws=10)
    assert any("records are like others in all fields, but of values so common" in one for one in fitted.diagnostics())
    table = fitted.loss().set_index("quantity")["value"]
    assert table["records_alike"] >= 400
    assert table["pairs_alike"] >= 400 * 399 / 2
    assert table["links_alike"] > 1


def test_where_nothing_is_linked_nothing_is_expected(make_records):
    apart = make_records(np.tile(np.arange(30), (3, 1)))
    with pytest.warns(DiagnosticWarning, match="no two records were linked, so nothing was learned about errors"):
        fitted = cs.fit("block-linkage", apart, draws=10)
    assert not any("the model expects" in one.text for one in fitted.findings())
    table = fitted.loss().set_index("quantity")["value"]
    assert np.isnan([table["found_share"], table["entities_corrected"]]).all()


def test_links_that_a_cut_cost(simulate):
    records = simulate(1_000, numbers=(30, 40, 12), exponents=(0, 0, 0))
    fitted = cs.fit("block-linkage", records, draws=10, largest=3)
    table = fitted.loss().set_index("quantity")["value"]
    assert 0 < table["links_cut"] < table["pairs_cut"]
    assert table["links_cut"] == fitted.posterior.cut[4]


def test_what_the_candidates_of_draws_leave_out(simulate):
    """By NUTS the candidates are found once; what they leave out is told of them too."""
    records = simulate(150, numbers=(30, 40, 12), exponents=(0, 0, 0))
    resolved = block_linkage.MODEL.resolve(records, None, {"threshold": 2.0, "largest": 2})
    one = {"distortion": np.full(3, 0.05), "size_share": np.array([0.8, 0.15, 0.05]), "intensity": np.array(110.0)}
    draws = Draws({site: np.broadcast_to(value, (1, 4, *value.shape)) for site, value in one.items()})
    truth = block_linkage.truth(draws, resolved, key=jax.random.key(0), num_draws=4)
    table = block_linkage.MODEL.table("loss").make(draws, resolved, truth)
    found = dict(zip(table["quantity"], table["value"], strict=True))
    assert 0 < found["found_share"] < 1
    assert found["entities"] == truth.num_clusters().mean()
    assert found["pairs_cut"] > found["links_cut"] > 0
    account = Account(resolved=resolved, method="nuts", posterior=draws, make_truth=lambda: truth)
    told = [note.words() for note in block_linkage.MODEL.says(account)]
    assert "were cut at their weakest links" in told[0]
    assert "what they leave out is in the table loss" in told[-1]
