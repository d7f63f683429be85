"""What fields say of pairs: weights by hand, pairs explained, records that nothing links; thresholds and reviews."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit

import consilience as cs
from consilience import linkage_figures
from consilience.errors import InputError, UnknownName, UnsupportedRequest
from consilience.evaluation.agreement.jackknife import wilson
from consilience.models.block_linkage import simulate
from consilience.models.block_linkage.weights import _counts, learned
from consilience.models.truth.partitions import Pairs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
LIKELIHOODS = ("hit-miss", "dirichlet-multinomial", "error-classes")


@pytest.fixture(scope="module")
def people():
    settings = {"num_records": 200, "num_values": (40, 50, 20, 12), "size_share": (0.7, 0.2, 0.1), "missing": 0.05}
    return simulate(3, **settings)[0]


@pytest.fixture(scope="module")
def linked(people):
    return cs.fit("block-linkage", people, draws=20)


@pytest.fixture(scope="module")
def similar():
    table = {
        "id": [f"r{k}" for k in range(12)],
        "name": ["anna", "ana", "berta", "carl", "dora", "emil", "frida", "georg", "hanna", "ivo", "jana", "karl"],
        "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Kiel", "Kiel", "Jena", "Jena", "Trier", "Trier", "Ulm", "Bonn"],
        "year": ["1950", "1950", "1951", "1952", "1953", "1954", "1955", "1951", "1952", "1953", "1954", "1955"],
    }
    return cs.link(table, similar={"name": "string"}, fields=["name", "town", "year"], draws=10)


def test_weights_of_hit_miss_are_those_of_the_formula(linked, people):
    table = linked.weights().set_index(["field", "outcome"])
    parameters, _ = learned(linked.posterior, linked.resolved)
    for place, field in enumerate(people.fields):
        share = parameters.value_share[people.first_value[place] : people.first_value[place + 1]]
        miss = parameters.distortion[place]
        by_chance, differs = np.sum(share**2), miss * (2 - miss)
        m = 1 - differs + differs * by_chance
        has, records = np.count_nonzero(people.value[place] >= 0), people.num_records
        lacks = 1 - has * (has - 1) / (records * (records - 1))
        columns, seen = ["m", "u", "weight"], 1 - lacks
        equal, other, missing = (table.loc[(field, one), columns].tolist() for one in ("equal", "differ", "missing"))
        assert equal == pytest.approx([seen * m, seen * by_chance, np.log(m / by_chance)])
        assert other == pytest.approx([seen * (1 - m), seen * (1 - by_chance), np.log((1 - m) / (1 - by_chance))])
        assert missing == pytest.approx([lacks, lacks, 0])


@pytest.mark.parametrize("restriction", ["none", "across", "within"])
@pytest.mark.parametrize("of", ["linked", "similar"])
def test_outcomes_are_counted_over_all_pairs_as_one_by_one(request, restriction, of):
    """Of pairs of records that may be links, each as much of one as it is probable."""
    data, generator = request.getfixturevalue(of).data, np.random.default_rng(1)
    value = np.where(generator.random(data.value.shape) < 0.1, -1, data.value)
    source = generator.integers(0, 3, data.num_records)
    data = data.replace(value=value, source=source.astype(np.int32), num_sources=3, sources=["a", "b", "c"])
    same = {"none": (False, True), "across": (False,), "within": (True,)}[restriction]
    every = np.array([*itertools.combinations(range(data.num_records), 2)])
    every = every[np.isin(source[every[:, 0]] == source[every[:, 1]], same)]
    probability = np.where(generator.random(len(every)) < 0.3, generator.random(len(every)), 0.0)
    likely = probability > 0
    counts = _counts(data, restriction, Pairs(*every[likely].T, probability[likely]))
    alike = set() if data.near is None else {tuple(sorted(pair)) for pair in np.asarray(data.near).tolist()}
    for place in range(data.num_fields):
        expected = np.zeros((4, 2))
        for pair, own in zip(every.tolist(), probability.tolist(), strict=True):
            one, other = (int(value[place][record]) for record in pair)
            near = tuple(sorted((one + data.first_value[place], other + data.first_value[place]))) in alike
            kind = 3 if min(one, other) < 0 else 0 if one == other else 1 if near else 2
            expected[kind] += own, 1 - own
        np.testing.assert_allclose(counts[place], expected, atol=1e-6)


def test_outcomes_of_a_field_are_all_that_there_are(linked, similar):
    for fit, columns in ((linked, ["m", "u", "links", "others"]), (similar, ["m", "u", "others"])):
        np.testing.assert_allclose(fit.weights().groupby("field")[columns].sum(), 1)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_weights_are_sums_over_all_pairs_of_values(people, likelihood):
    """Against the likelihood of every pair of values of a field, one by one."""
    fit = cs.fit("block-linkage", people, draws=2, likelihood=likelihood)
    table = fit.weights().set_index(["field", "outcome"])
    parameters, chosen = learned(fit.posterior, fit.resolved)
    place = 2
    codes = np.arange(people.first_value[place], people.first_value[place + 1])
    pairs = np.array([*itertools.product(codes, codes)]).T
    values = np.full((2, people.num_fields, len(pairs[0])), -1)
    values[:, place] = pairs
    together = np.prod(parameters.value_share[pairs], axis=0) * np.exp(chosen.log_pairs(values, parameters))
    assert together.sum() == pytest.approx(1)
    same = pairs[0] == pairs[1]
    found = table.loc[people.fields[place]]["m"]
    seen = found["equal"] + found["differ"]
    assert (found["equal"], found["differ"]) == pytest.approx(
        (seen * together[same].sum(), seen * together[~same].sum())
    )


def test_weights_of_similar_fields_have_near(similar):
    table = similar.weights()
    of_name = table[table["field"] == "name"].set_index("outcome")
    assert of_name.index.tolist() == ["equal", "near", "differ", "missing"]
    assert of_name["weight"]["equal"] > of_name["weight"]["near"] > of_name["weight"]["differ"]
    parameters, likelihood = learned(similar.posterior, similar.resolved)
    alone = parameters.value_share * np.exp(likelihood.log_alone(parameters.distortion, np))
    assert of_name["u"]["near"] == pytest.approx(2 * np.prod(alone[similar.data.near], axis=1).sum())


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_an_explanation_adds_up(people, likelihood):
    fit = cs.fit("block-linkage", people, draws=2, likelihood=likelihood)
    pairs = fit.pairs()
    middle = np.abs(pairs["probability"] - 0.5).argmin()
    for place in (0, middle, len(pairs) - 1):
        a, b, probability = pairs.iloc[place]
        table = fit.explain(b, a)
        assert table["term"].tolist()[: people.num_fields + 1] == ["prior", *people.fields]
        assert ("fields together" in set(table["term"])) == (likelihood == "error-classes")
        np.testing.assert_allclose(table["sum"], np.cumsum(table["log_odds"]))
        assert table["probability"].iloc[-1] == pytest.approx(probability)
        assert table["sum"].iloc[-1] == pytest.approx(logit(probability), rel=1e-6)
    # What the other records add is nothing where there are none: in a component of two.
    sizes = np.diff(fit.posterior.first)
    one, other = fit.posterior.member[fit.posterior.first[np.flatnonzero(sizes == 2)[0]] :][:2]
    assert fit.explain(*fit.data.records[[one, other]])["log_odds"].iloc[-1] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_shares_of_an_explanation_are_those_of_all_second_values(people, likelihood):
    """Summed up, over the values that a second record may have, by the likelihood of pairs of one field."""
    fit = cs.fit("block-linkage", people, draws=2, likelihood=likelihood)
    parameters, chosen = learned(fit.posterior, fit.resolved)
    alone = parameters.value_share * np.exp(chosen.log_alone(parameters.distortion, np))
    pair = fit.pairs().iloc[0]
    table = fit.explain(pair["record_a"], pair["record_b"]).set_index("term")
    one = fit.data.records.tolist().index(pair["record_a"])
    shown = 0
    for field, name in enumerate(people.fields):
        row = table.loc[name]
        if not np.isfinite(row["m"]):
            continue
        first, last = people.first_value[field : field + 2]
        every = np.arange(first, last)
        values = np.full((2, people.num_fields, len(every)), -1)
        values[0, field], values[1, field] = first + people.value[field, one], every
        together = alone[every] * np.exp(chosen.log_pairs(values, parameters))
        taken = (every == values[0, field, 0]) == (row["outcome"] == "equal")
        assert (row["m"], row["u"]) == pytest.approx((together[taken].sum(), alone[every[taken]].sum()))
        assert np.log(row["m"] / row["u"]) == pytest.approx(row["log_odds"], abs=1e-4)
        shown += 1
    assert shown > 0


def test_an_explanation_names_values_and_outcomes(similar):
    table = similar.explain("r0", "r1").set_index("term")
    assert table.loc["name", ["value_a", "value_b", "outcome"]].tolist() == ["anna", "ana", "near"]
    assert table.loc["town", ["value_a", "value_b", "outcome"]].tolist() == ["Ulm", "Ulm", "equal"]
    with pytest.raises(UnknownName, match="there is no record 'r99'; did you mean 'r9'"):
        similar.explain("r1", "r99")
    with pytest.raises(UnsupportedRequest, match="compared with itself"):
        similar.explain("r1", "r1")


def test_no_candidate_has_no_probability(linked, people):
    pairs = linked.pairs()
    known = set(zip(pairs["record_a"], pairs["record_b"], strict=True))
    a, b = next(pair for pair in itertools.combinations(people.records, 2) if pair not in known)
    last = linked.explain(a, b).iloc[-1]
    assert (last["probability"], last["sum"]) == (0, -np.inf)


def test_unlinkable_records_are_those_whose_copies_are_not_linked(linked, people):
    table = linked.unlinkable()
    parameters, likelihood = learned(linked.posterior, linked.resolved)
    codes = np.where(people.value >= 0, people.value + people.first_value[:-1, None], -1)
    alone, pair = parameters.size_share[:2]
    own = likelihood.log_pairs(np.stack([codes, codes]), parameters)
    own = own + np.log(2 * pair / (parameters.intensity * alone**2))
    np.testing.assert_allclose(table["share"], [(own < threshold).mean() for threshold in table["threshold"]])
    assert table["share"].iloc[0] == 0
    assert table["share"].iloc[-1] == 1


def test_keys_make_at_least_the_candidates(linked, people, similar):
    """Every pair above the threshold shares a key; and a key of n records makes n (n - 1) / 2 pairs."""
    table = linked.candidates()
    assert (table["records"] <= table["up_to"]).all()
    assert table["pairs"].sum() >= len(linked.pairs())
    exact = table[table["records"] == table["up_to"]]
    np.testing.assert_array_equal(exact["pairs"], exact["keys"] * exact["records"] * (exact["records"] - 1) // 2)
    copies = people.replace(
        value=np.repeat(people.value[:, :1], 5, axis=1), source=people.source[:5], records=people.records[:5],
        entity=None, entities=None, num_records=5,
    )  # fmt: skip
    alike = cs.fit("block-linkage", copies, draws=2).candidates()
    assert alike["records"].tolist() == alike["up_to"].tolist() == [5]
    for fit in (similar, cs.fit("block-linkage", people.with_candidates(linked.pairs()), draws=2)):
        with pytest.raises(UnsupportedRequest, match="have no keys"):
            fit.candidates()


def test_thresholds_count_pairs_and_what_they_connect(linked):
    table, pairs = linked.thresholds().set_index("threshold"), linked.pairs()["probability"]
    assert table.loc[0.5, "pairs"] == (pairs >= 0.5).sum()
    assert table.loc[0.5, "precision"] == pytest.approx(pairs[pairs >= 0.5].mean())
    assert table.loc[0.9, "recall"] == pytest.approx(pairs[pairs >= 0.9].sum() / pairs.sum())
    assert table["clusters"].is_monotonic_increasing
    assert table["recall"].is_monotonic_decreasing


def answered(fit, records, **choice):
    entity = dict(zip(records.records, records.entity, strict=True))
    asked = fit.review(**choice)
    same = [entity[a] == entity[b] for a, b in zip(asked["record_a"], asked["record_b"], strict=True)]
    return asked.assign(answer=np.where(same, "same", "different"))


def test_review_is_half_uncertain_and_half_drawn(linked, people):
    asked, every = linked.review(number=40), linked.pairs()
    assert len(asked) == 40
    assert asked["sampled"].sum() == 20
    assert not asked.duplicated(["record_a", "record_b"]).any()
    doubt = np.sort(np.abs(every["probability"] - 0.5))
    np.testing.assert_allclose(np.abs(asked["probability"] - 0.5)[:20], doubt[:20])
    assert asked["weight"].sum() == pytest.approx(len(every)), "each candidate is stood for once"
    tenth = (asked["probability"][20:] * 10).astype(int).clip(upper=9)
    rest = every.merge(asked[:20], on=["record_a", "record_b"], how="left", indicator=True).query("_merge=='left_only'")
    there = (rest["probability_x"] * 10).astype(int).clip(upper=9)
    for one, rows in asked[20:].groupby(tenth):
        np.testing.assert_allclose(rows["weight"], (there == one).sum() / len(rows))
    assert (asked["answer"] == "").all()
    first = people.records.tolist().index(asked["record_a"][0])
    assert asked["a.field_1"][0] == (people.column("field_1")[first] or "")
    assert asked.equals(linked.review(number=40))
    assert not asked.equals(linked.review(number=40, seed=1))
    assert len(linked.review(number=10**6)) == len(every)
    with pytest.raises(UnsupportedRequest, match="number=0 pairs cannot be reviewed"):
        linked.review(number=0)


def test_review_asks_for_the_pairs_in_doubt_by_default(linked):
    asked, every = linked.review(), linked.pairs()
    doubt = every[(every["probability"] > 0.02) & (every["probability"] < 0.99)]
    assert 0 < len(doubt) < len(every)
    assert set(map(tuple, asked[["record_a", "record_b"]].values)) == set(map(tuple, doubt.values[:, :2]))
    assert np.abs(asked["probability"] - 0.5).is_monotonic_increasing
    assert not asked["sampled"].any()
    assert (asked["weight"] == 1).all()


def test_labels_of_all_candidates_give_the_true_scores(linked, people):
    labels, every = answered(linked, people, number=10**6), linked.pairs()
    table = linked.thresholds(labels).set_index("threshold")
    same = labels["answer"] == "same"
    above = labels["probability"] >= 0.5
    assert table.loc[0.5, "precision"] == pytest.approx(same[above].mean())
    assert table.loc[0.5, "recall"] == pytest.approx(same[above].sum() / same.sum())
    assert table.loc[0.5, "pairs"] == (every["probability"] >= 0.5).sum()
    found = linked.calibration(labels)
    assert found["number"].sum() == len(every)
    tenth = (labels["probability"] * 10).astype(int).clip(upper=9)
    np.testing.assert_allclose(found["expected"], labels["probability"].groupby(tenth).mean())
    np.testing.assert_allclose(found["observed"], same.groupby(tenth).mean())
    assert ((found["lower"] <= found["observed"]) & (found["observed"] <= found["upper"])).all()


def test_calibration_weighs_what_was_drawn(linked):
    """Of two labels in one tenth, one stands for three pairs."""
    pairs = linked.pairs()
    rare = pairs[(pairs["probability"] < 0.1)].iloc[:2]
    labels = rare.assign(answer=["1", "0"], weight=[3.0, 1.0])
    found = linked.calibration(labels)
    assert found["probability_bin"].tolist() == ["0.0 to 0.1"]
    assert found["observed"].tolist() == [0.75]
    assert found["expected"].tolist() == pytest.approx([np.average(rare["probability"], weights=[3, 1])])
    low, high = wilson(0.75, 4**2 / (3**2 + 1**2), 1.959964)
    assert (found["lower"][0], found["upper"][0]) == pytest.approx((low, high), rel=1e-5)


def test_labels_that_were_all_uncertain_are_refused(linked, people):
    labels = answered(linked, people, number=20)
    for use in (linked.calibration, linked.thresholds):
        with pytest.raises(UnsupportedRequest, match="because they were uncertain, which say nothing of the others"):
            use(labels[~labels["sampled"]])
        with pytest.raises(UnsupportedRequest, match="no pair has an answer yet"):
            use(labels.assign(answer=""))


LABELS = {
    "no answer": ({"record_a": ["r1"], "record_b": ["r2"]}, "there is no column 'answer'"),
    "another word": ({"record_a": ["r1"], "record_b": ["r2"], "answer": ["maybe"]}, "neither 'same' nor 'different'"),
    "no record": ({"record_a": ["x"], "record_b": ["r2"], "answer": ["same"]}, "there is no such record"),
    "itself": ({"record_a": ["r2"], "record_b": ["r2"], "answer": ["same"]}, "cannot be linked to itself"),
    "error": ({"record_a": ["r1"], "record_b": ["r2"], "answer": ["same"], "error": [0.5]}, r"not in \[0, 0.5\)"),
    "contradiction": (
        {
            "record_a": ["r1", "r3", "r4", "r9"], "record_b": ["r2", "r2", "r3", "r8"],
            "answer": ["same", "must", "1", "same"],
        },
        "",
    ),
    "chain": (
        {
            "record_a": ["r1", "r3", "r4", "r1"], "record_b": ["r2", "r2", "r3", "r4"],
            "answer": ["same", "must", "1", "apart"],
        },
        r"r1 and r4 are said to be different, and the same by .*\(r1 – r2\), .*\(r3 – r2\), .*\(r4 – r3\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LABELS)
def test_labels_that_cannot_be_read(linked, case):
    table, message = LABELS[case]
    if not message:
        assert linked.calibration(table)["number"].sum() == 4
        return
    with pytest.raises(InputError, match=message):
        linked.calibration(table)


def test_unsure_answers_may_contradict_each_other(linked):
    table = {"record_a": ["r1", "r1"], "record_b": ["r2", "r2"], "answer": ["same", "apart"], "error": [0.1, None]}
    assert linked.calibration(table)["number"].sum() == 2


@pytest.mark.parametrize("name", ["weights", "unlinkable", "thresholds", "explain", "calibration", "candidates"])
def test_figures_draw_their_tables(linked, people, similar, name, tmp_path):
    pairs = linked.pairs()
    drawn = {
        "weights": lambda: linkage_figures.weights_of_fields(similar.weights()),
        "unlinkable": lambda: linkage_figures.unlinkable_records(linked.unlinkable()),
        "thresholds": lambda: linkage_figures.threshold_curves(linked.thresholds()),
        "candidates": lambda: linkage_figures.pairs_by_key(linked.candidates()),
        "explain": lambda: linkage_figures.explained_pair(linked.explain(*pairs.iloc[0, :2])),
        "calibration": lambda: linkage_figures.calibration_of_pairs(
            linked.calibration(answered(linked, people, number=50))
        ),
    }[name]()
    drawn.figure.savefig(tmp_path / "figure.png")
    assert drawn.get_title(loc="left")


def test_an_impossible_pair_is_drawn(linked, people, tmp_path):
    pairs = linked.pairs()
    known = set(zip(pairs["record_a"], pairs["record_b"], strict=True))
    a, b = next(pair for pair in itertools.combinations(people.records, 2) if pair not in known)
    table = linked.explain(a, b)
    bars = linkage_figures.explained_pair(table).patches
    assert len(bars) == len(table)
    assert np.isfinite([bar.get_width() for bar in bars]).all()
    assert expit(table["sum"]).tolist() == table["probability"].tolist()
