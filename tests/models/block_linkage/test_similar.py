"""Fields that are compared by similarity: explicit sums over true values, pairs, the join, EM, and RLdata500."""

import functools
import html

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.data import read_records
from consilience.errors import InputError, UnknownName, UnsupportedRequest
from consilience.models.block_linkage import similar as similar_model
from consilience.models.block_linkage import similar_pairs
from consilience.models.block_linkage.em import log_base
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    enumerate_blocks_jax,
    gather_values,
    size_terms,
)
from consilience.models.block_linkage.join import join, pair_log_odds, prior_log_odds
from consilience.models.block_linkage.model import linkable, log_density
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.similar import BEYOND, DECAY, for_data
from consilience.models.block_linkage.simulation import simulate_records
from consilience.models.block_linkage.starting import record_shares
from consilience.similarity import with_similar
from tests.models.records import german_names, log_sum_over_partitions, pair_scores

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")

DISTORTION = np.array([0.2, 0.07, 0.1])
PEOPLE = {
    "id": range(8),
    "name": ["anna", "hanna", "johanna", "max", "maks", "", "anna", "marx"],
    "city": ["bonn", "bonn", "kiel", "jena", "jena", "kiel", "", "bonn"],
    "born": ["1951", "1952", "1951", "1954", "1990", "1990", "1951", "1955"],
}


@pytest.fixture(params=["string", "typo"])
def people(request):
    return with_similar(read_records(PEOPLE), {"name": request.param, "born": "number"})


def distortions(records, field, miss):
    """Return w(x | y) of all values of a field, as the formula has it; rows are true values."""
    first, last = records.first_value[field : field + 2]
    distance = np.full((last - first,) * 2, BEYOND)
    for (one, other), apart in zip(records.near - first, records.distance, strict=True):
        if 0 <= one < last - first:
            distance[one, other] = distance[other, one] = apart
    share = record_shares(records)[first:last]
    weight = share * np.exp(-DECAY * distance)
    np.fill_diagonal(weight, 0)
    return share, weight / weight.sum(axis=1, keepdims=True)


def summed(records, field, values, miss):
    """Return the probability of values of an entity in a similar field, by the sum over true values."""
    share, distorted = distortions(records, field, miss)
    copied = (1 - miss) * np.eye(len(share)) + miss * distorted
    return float(np.sum(share * np.prod([copied[:, value] for value in values if value >= 0], axis=0)))


def marginals(records, members, xp=np, dtype=float):
    share = record_shares(records)
    values = gather_values(records.value, records.first_value, members)
    likelihood = for_data("hit-miss", records, xp.asarray(share, dtype), xp)
    candidates = for_data("hit-miss", records, share).candidates(values)
    table, distortion = xp.asarray(np.append(share, 1), dtype), xp.asarray(DISTORTION, dtype)
    program = functools.partial(likelihood.of_components, xp=xp)
    return (program if xp is np else jax.jit(program))(values, table, distortion, candidates)


def test_a_distortion_is_some_value(people):
    likelihood = for_data("hit-miss", people, record_shares(people))
    for field in (0, 2):
        share, distorted = distortions(people, field, 0.1)
        np.testing.assert_allclose(distorted.sum(axis=1), 1)
        first, last = people.first_value[field : field + 2]
        far = np.exp(-DECAY * BEYOND)
        weight = far * (1 + np.asarray(likelihood._excess_matrix()[first:last, first:last].todense())) * share
        np.fill_diagonal(weight, 0)
        np.testing.assert_allclose(weight / (far * likelihood.normaliser[first:last, None]), distorted, rtol=1e-12)


@pytest.mark.parametrize("members", [[0, 1], [0, 1, 2], [0, 6, 1, 2], [3, 4, 7, 5], [0, 1, 2, 5, 6, 7]])
def test_marginals_are_sums_over_true_values(people, members):
    found = marginals(people, np.array([members]))[:, 0]
    exact = gather_values(people.value, people.first_value, np.array([members]))[:, [1]]
    plain = for_data("hit-miss", people.replace(similar=None), None)
    of_city = plain.log_marginals(exact, np.append(record_shares(people), 1)[exact], DISTORTION[[1]], np)[:, 0]
    for subset in range(2 ** len(members)):
        chosen = [record for place, record in enumerate(members) if subset >> place & 1]
        expected = of_city[subset]
        for field in (0, 2):
            values = people.value[field, chosen].tolist()
            expected += np.log(summed(people, field, values, DISTORTION[field]))
            expected -= sum(np.log(summed(people, field, [value], DISTORTION[field])) for value in values)
        np.testing.assert_allclose(found[subset], expected, atol=1e-10)


def test_records_alone_are_sums_over_true_values(people):
    likelihood = for_data("hit-miss", people, record_shares(people))
    share, alone = record_shares(people), likelihood.log_alone(DISTORTION, np)
    for field in (0, 2):
        for place in range(people.first_value[field], people.first_value[field + 1]):
            expected = summed(people, field, [place - people.first_value[field]], DISTORTION[field])
            np.testing.assert_allclose(np.log(share[place]) + alone[place], np.log(expected), atol=1e-12)
    assert not alone[people.first_value[1] : people.first_value[2]].any()


def test_pairs_are_components_of_two(people):
    parameters = Parameters(record_shares(people), DISTORTION, 6.0, np.array([0.9, 0.1]))
    likelihood = for_data("hit-miss", people, parameters.value_share)
    first, second = np.triu_indices(people.num_records, 1)
    found = pair_log_odds(people.value, first, second, parameters, likelihood, people.first_value)
    expected = marginals(people, np.stack([first, second], axis=1))[3]
    np.testing.assert_allclose(found.log_odds - expected, found.log_odds[0] - expected[0], atol=1e-10)
    itself = np.arange(people.num_records)
    same = pair_log_odds(people.value, itself, itself, parameters, likelihood, people.first_value)
    agree, _ = likelihood.pair_terms(parameters, people.first_value)
    codes = value_codes(people.value, people.first_value)
    terms = np.append(agree, 0)[codes].sum(axis=0)
    np.testing.assert_allclose(same.log_odds - terms, same.log_odds[0] - terms[0], atol=1e-10)


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-10), (False, 2e-5)])
def test_jax_and_numpy_have_the_same_similar_marginals(people, double, tolerance):
    members = np.array([[0, 1, 6], [3, 4, 7]])
    expected = marginals(people, members)
    with jax.enable_x64(double):
        found = marginals(people, members, jnp, jnp.result_type(float))
    np.testing.assert_allclose(found, expected, atol=tolerance)


def test_enumeration_is_the_same_in_jax(people):
    members, share = np.array([[0, 1, 2], [3, 4, 7]]), record_shares(people)
    values = gather_values(people.value, people.first_value, members)
    terms = size_terms(6.0, np.array([0.8, 0.15, 0.05]), 3, np)
    likelihood = for_data("hit-miss", people, share)
    own = enumerate_blocks(values, share, DISTORTION, terms, likelihood, dtype=np.float64)
    with jax.enable_x64(True):
        given = (jnp.asarray(one) for one in (share, DISTORTION, terms))
        found = enumerate_blocks_jax(values, *given, likelihood, None, likelihood.candidates(values), chunk=1)
    for one, other in zip(own, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_the_density_of_similar_fields_sums_over_partitions():
    few = {name: list(values)[:4] for name, values in PEOPLE.items()}
    people = with_similar(read_records(few), {"name": "string", "born": "number"})
    share, sizes, number = record_shares(people), np.array([0.7, 0.2, 0.1]), people.num_records
    parameters = Parameters(share, DISTORTION, 5.0, sizes)
    log_cluster = marginals(people, np.arange(number)[None])[:, 0]
    expected = log_sum_over_partitions(log_cluster, size_terms(5.0, sizes, number, np))
    expected += log_base(people, parameters, for_data("hit-miss", people, share))
    with jax.enable_x64(True):
        linked = linkable(people)
        others = [jnp.asarray(one, float) for one in (share, sizes, 5.0)]
        density = jax.jit(lambda b: log_density(linked, others[0], b, *others[1:]))
        found, slope = jax.value_and_grad(density)(jnp.asarray(DISTORTION))
        more = density(jnp.asarray(DISTORTION + [1e-6, 0, 0]))
        risen = float((more - found) / 1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(slope[0], risen, rtol=1e-3)


def test_field_without_near_values(people):
    apart = people.replace(near=people.near[:0], distance=people.distance[:0])
    found = marginals(apart, np.array([[0, 1, 2, 6]]))
    assert np.isfinite(found).all()
    likelihood = for_data("hit-miss", apart, record_shares(apart))
    np.testing.assert_allclose(likelihood.normaliser, 1 - likelihood.value_share)


@pytest.fixture(scope="module")
def misspelt():
    records = simulate_records(
        1500, num_values=(300, 400, 80, 12, 28), distortion=0.08, size_share=(0.8, 0.15, 0.05), typos=True, seed=3
    )
    return records, with_similar(records, {"field_1": "string", "field_2": "string"})


def test_similarity_finds_more_of_what_is_misspelt(misspelt, fit_em):
    records, similar = misspelt
    scores = [pair_scores(fit_em(one), records.entity) for one in (records, similar)]
    assert scores[1][1] > scores[0][1] + 0.1
    assert scores[1][0] > scores[0][0] - 0.02


def test_where_only_typing_errors_distort_names_saying_so_is_better(fit_em):
    records = simulate_records(
        4000, num_values=(3000, 4000, 60, 12), distortion=0.08, size_share=(0.7, 0.3), typos=["field_1", "field_2"],
        seed=6,
    )  # fmt: skip
    fits = [fit_em(with_similar(records, dict.fromkeys(("field_1", "field_2"), kind))) for kind in ("string", "typo")]
    assert fits[1].evidence[-1] > fits[0].evidence[-1] + 50
    scores = [pair_scores(posterior, records.entity) for posterior in fits]
    f1 = [2 / (1 / precision + 1 / recall) for precision, recall in scores]
    assert f1[1] > f1[0] + 0.005


def test_very_dense_vocabularies_have_the_nearest_groups_alone(misspelt, monkeypatch, fit_em):
    records = misspelt[1]
    parameters = fit_em(records).parameters()
    monkeypatch.setattr(similar_pairs, "_MOST_FURTHER", 0)
    _, lost, weight = all_pairs_and_lost(records, parameters, 6.0)
    assert 0 < weight[lost].sum() < 5e-3 * weight.sum()


def test_the_first_phase_raises_the_evidence_of_similar_fields(misspelt, fit_em):
    posterior = fit_em(misspelt[1], num_sampled=10**9)
    assert (np.diff(posterior.evidence[: int(posterior.first_phase)]) >= 0).all()


def test_the_join_finds_similar_pairs(misspelt, fit_em):
    records = misspelt[1]
    parameters = fit_em(records).parameters()
    every, lost, weight = all_pairs_and_lost(records, parameters, 4.0)
    assert weight[lost].sum() < 1e-3 * weight.sum()
    # Without groups, pairs that need their near values for the threshold would not be found.
    likelihood = for_data("hit-miss", records, parameters.value_share)
    agree, differ = likelihood.pair_terms(parameters, records.first_value)
    both = records.value[:, every.first], records.value[:, every.second]
    codes = np.where(both[0] == both[1], both[0] + records.first_value[:-1, None], -1)
    far = np.where(codes >= 0, agree[codes], differ[:, None]).sum(axis=0) + prior_log_odds(parameters) <= -4
    assert weight[far].sum() > 0.01 * weight.sum()


def all_pairs_and_lost(records, parameters, threshold):
    """Return the pairs above a threshold by brute force, which of them the join does not find, and their weights."""
    likelihood = for_data("hit-miss", records, parameters.value_share)
    first, second = (place.astype(np.int32) for place in np.triu_indices(records.num_records, 1))
    every = pair_log_odds(records.value, first, second, parameters, likelihood, records.first_value)
    every = every.where(every.log_odds > -threshold)
    found = join(records, parameters, likelihood, threshold=threshold)
    keys, of_found = (one.first.astype(int) * records.num_records + one.second for one in (every, found))
    assert np.isin(of_found, keys).all()
    return every, ~np.isin(keys, of_found), 1 / (1 + np.exp(-every.log_odds))


def test_the_join_finds_all_pairs_of_a_single_near_field():
    # One similar field, with few values that are near: no pair needs more than what groups hold.
    records = simulate_records(
        600, num_values=(4000, 30, 12, 9), distortion=0.2, size_share=(0.5, 0.5), typos=["field_1"], seed=4
    )
    similar = with_similar(records, {"field_1": "string"})
    parameters = Parameters(record_shares(similar), np.full(4, 0.2), 400.0, np.array([0.5, 0.5]))
    every, lost, _ = all_pairs_and_lost(similar, parameters, 3.0)
    names = np.sort(similar.value[0, [every.first, every.second]], axis=0)
    near = (similar.near == names.T[:, None]).all(axis=2).any(axis=1)
    assert near.sum() > 20
    # What is not near itself may be near a third value.
    assert not lost[near | (names[0] == names[1])].any()
    assert lost.mean() < 0.05


def test_pairs_that_lack_one_field_are_found():
    records = simulate_records(
        800, num_values=(300, 400, 80, 12), missing=0.05, size_share=(0.6, 0.4), typos=["field_1", "field_2"], seed=5
    )
    similar = with_similar(records, {"field_1": "string", "field_2": "string"})
    parameters = Parameters(record_shares(similar), np.full(4, 0.05), 600.0, np.array([0.6, 0.4]))
    every, lost, weight = all_pairs_and_lost(similar, parameters, 4.0)
    lacks = ((similar.value[:, every.first] < 0) | (similar.value[:, every.second] < 0)).sum(axis=0)
    for number in (0, 1):
        assert weight[(lacks == number) & lost].sum() < 2e-3 * weight[lacks == number].sum()


def test_of_many_shared_true_values_those_that_weigh_most_count(misspelt, monkeypatch):
    records = misspelt[1]
    # Records that differ in both names, by an error or two.
    one, other = (records.near[records.near[:, 0] < records.first_value[1]][::7]).T
    place = {value: record for record, value in enumerate(records.value[0])}
    members = np.array([[place[a], place[b]] for a, b in zip(one, other, strict=True) if a in place and b in place])
    values = gather_values(records.value, records.first_value, members)
    likelihood = for_data("hit-miss", records, record_shares(records))
    given = np.append(record_shares(records), 1), np.full(5, 0.08)
    kept = likelihood.of_components(values, *given, likelihood.candidates(values), np)[3]
    monkeypatch.setattr(similar_model, "_MOST_SHARED", 10_000)
    exact = likelihood.of_components(values, *given, likelihood.candidates(values), np)[3]
    assert likelihood.candidates(values).value.shape[0] > 10
    assert (kept <= exact + 1e-9).all()
    np.testing.assert_allclose(kept, exact, atol=0.05)


def test_the_share_of_links_found_is_that_of_the_records(misspelt, fit_em):
    records, similar = misspelt
    posterior = fit_em(similar)
    likelihood = for_data("hit-miss", similar, posterior.value_share)
    first, second = np.nonzero(np.triu(records.entity[:, None] == records.entity, 1))
    odds = pair_log_odds(similar.value, first, second, posterior.parameters(), likelihood, similar.first_value)
    share = np.mean(odds.log_odds > -4)
    assert abs(posterior.found_share - share) < 3 * np.sqrt(share * (1 - share) / len(first))
    # Nothing is completed by it: the model expects other distortions.
    assert not posterior.completed


# ---- which values are near ----


def near(values, kind):
    records = with_similar(read_records({"id": range(len(values)), "field": values}), {"field": kind})
    pairs = zip(records.values[records.near].tolist(), records.distance.tolist(), strict=True)
    return {tuple(pair): distance for pair, distance in pairs}


def test_texts_are_near_by_typing_errors():
    found = near(["Vogt", "VOGHT", "Votg", "Vogel", "Meier", "Mayer", "Vog"], "string")
    assert found == {
        ("Vogt", "VOGHT"): 1, ("Vogt", "Votg"): 1, ("Vogt", "Vogel"): 2, ("Vogt", "Vog"): 1, ("VOGHT", "Vog"): 2,
        ("VOGHT", "Vogel"): 2, ("Votg", "Vog"): 1, ("Vogel", "Vog"): 2, ("Meier", "Mayer"): 2,
    }  # fmt: skip


def test_where_only_typing_errors_are_to_be_expected_near_texts_are_nearer():
    texts = ["Vogt", "Voght", "Votg", "Vogel", "Meier"]
    strings, typos = near(texts, "string"), near(texts, "typo")
    assert typos == {pair: errors - 4 for pair, errors in strings.items()}


def test_numbers_are_near_by_their_difference():
    assert near(["40", "41", "42.5", "60", "none", "62"], "number") == {
        ("40", "41"): 1, ("41", "42.5"): 1.5, ("60", "62"): 2,
    }  # fmt: skip


def test_dates_are_near_by_their_parts():
    found = near(["1951-02-03", "1951-03-02", "1952-02-03", "1951-02-28", "1951-03-01", "1960-12-31", "x"], "date")
    assert found == {
        ("1951-02-03", "1951-03-02"): 1, ("1951-02-03", "1952-02-03"): 1, ("1951-02-03", "1951-02-28"): 2,
        ("1951-03-02", "1951-03-01"): 1, ("1951-02-28", "1951-03-01"): 1,
    }  # fmt: skip


def test_values_that_are_all_near_are_refused():
    with pytest.raises(UnsupportedRequest, match="smaller units"):
        near([str(number / 1000) for number in range(400)], "number")


# ---- how it is asked for ----


@pytest.fixture
def fit():
    return cs.link(PEOPLE, fields=["name", "city", "born"], similar={"name": "string"}, draws=20)


def test_link_takes_similar_fields(fit, tmp_path):
    assert fit.attributes["similar"] == "name (string)"
    assert fit.data.similar.tolist() == [True, False, False]
    page = cs.report(fit, path=tmp_path / "report.html").read_text()
    assert "except by similarity: name (string)" in page
    assert "similar={'name': 'string'}" in html.unescape(page)


def test_a_saved_fit_is_still_similar(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = cs.load_fit(tmp_path / "fit")
    np.testing.assert_array_equal(again.data.near, fit.data.near)
    assert again.pairs().equals(fit.pairs())


def test_the_command_takes_similar_fields(tmp_path, capsys):
    source = tmp_path / "people.csv"
    rows = zip(*PEOPLE.values(), strict=True)
    source.write_text("\n".join([",".join(PEOPLE), *(",".join(map(str, row)) for row in rows)]))
    fields = "name:string,city:category,born:number"
    given = ["--fields", fields, "--similar", "name=string,born=number"]
    words = ["link", str(source), *given, "-o", str(tmp_path / "out")]
    main(words)
    assert "but by similarity name (string), born (number)" in capsys.readouterr().out
    assert main([*words[:5], "name=sound", *words[6:], "--force"]) == 1
    assert "string, typo, number, date" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("similar", "error", "words"),
    [
        ({"name": "sound"}, UnknownName, "string, typo, number, date"),
        ({"street": "string"}, InputError, "there are name, city, born"),
    ],
)
def test_what_is_not_known_is_refused(similar, error, words):
    with pytest.raises(error, match=words):
        cs.link(PEOPLE, fields=["name", "city", "born"], similar=similar)


def test_other_likelihoods_are_refused():
    with pytest.raises(UnsupportedRequest, match="hit-miss"):
        cs.link(
            PEOPLE, fields=["name", "city", "born"], similar={"name": "string"}, likelihood="dirichlet-multinomial"
        )


def test_fields_are_chosen_before(people):
    with pytest.raises(UnsupportedRequest, match="before"):
        people.of_fields(["name"])


# ---- public data ----


@pytest.mark.public_data
@pytest.mark.parametrize(
    ("similar", "expected"),
    [((), 0.96), (("fname_c1", "lname_c1"), 0.98), (("fname_c1", "lname_c1", "by", "bm", "bd"), 0.99)],
)
def test_german_names_by_similarity(similar, expected, data_folder, fit_em):
    records = with_similar(german_names(data_folder), dict.fromkeys(similar, "string"))
    precision, recall = pair_scores(fit_em(records), records.entity)
    assert 2 * precision * recall / (precision + recall) == pytest.approx(expected, abs=0.005)
