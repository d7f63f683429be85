"""Chains of a fit, scores and leaderboards of its draws: by hand, and against scoring each draw by itself."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import consilience as cs
from consilience.data import Chains, Mentions, Predictions
from consilience.data.mentions import MENTION_TYPES
from consilience.errors import DiagnosticWarning, InputError, InputWarning, UnknownName, UnsupportedRequest
from consilience.evaluation.chains import DOCUMENT_CORRELATION, said_links
from consilience.evaluation.classes import resolve
from consilience.evaluation.coreference_scores import CoreferenceScores
from consilience.evaluation.scores import monte_carlo_errors
from consilience.evaluation.unit_sums import pseudo_scores, pseudo_weights
from consilience.models.truth import Entries, LabelDraws, PointTruth

METRICS = (
    "conll", "mentions", "muc", "b3", "ceafe", "ceafm", "blanc", "lea", "non-referring", "muc-recall", "b3-precision",
    "non-referring-precision",
)  # fmt: skip
TEXT = """
one a 0 1 DN DN DN
one b 3 3 DO(a) DO(a) DN
one c 5 5 NR NR DO(b)
one d 7 9 DO(b) DO(a) DN
one e 8 9 PR(d) PR DN
two f 0 0 DN DN DN
two g 2 4 DN DO(f) DO(f)
two h 6 6 NR NR NR
"""
DRAWS = (
    "DN DO(a) NR    DO(b) PR(d) DN DO(f) NR",
    "DN DO(a) NR    DO(a) PR    DN DN    NR",
    "DN DN    DO(b) DN    PR(d) DN DO(f) NR",
    "DN DO(a) DO(b) DO(b) DN    DN DO(f) NR",
    "DN DO(a) NR    DO(b) PR(d) DN DN    NR",
)


def annotated(text, *, spans=True):
    """Read mentions of lines: document, mention, first and last token, and a label of each annotator."""
    rows = [line.split() for line in text.strip().splitlines()]
    table = [
        {"document_id": document, "mention_id": mention, "annotator_id": annotator, "annotation": label}
        | ({"start": int(start), "end": int(end)} if spans else {})
        for document, mention, start, end, *labels in rows
        for annotator, label in zip("uvw", labels, strict=False)
    ]
    return cs.read_mentions(pandas.DataFrame(table))


def crowd():
    """Return eight mentions of two documents, annotated by three annotators."""
    return annotated(TEXT)


def with_draws(draws=DRAWS, data=None):
    """Return what stands for a fit: mentions, and draws of their labels."""
    data = crowd() if data is None else data
    names = data.label_codes().names
    position = {name: code for code, name in enumerate(names)}
    codes = np.array([[position[name] for name in draw.split()] for draw in draws])
    return SimpleNamespace(data=data, truth=LabelDraws(codes, len(names)).bound_to(data))


def test_what_a_response_says_of_mentions_is_the_nearest_earlier_one_of_its_entity():
    """It has mentions a, b and d in one entity, h in another, and c, e, f and g in none or not at all."""
    response = chains([(0, 0, 1, 0), (0, 3, 3, 0), (0, 5, 5, -1), (0, 7, 9, 0), (1, 1, 1, 1), (1, 6, 6, 1)])
    assert said_links(crowd(), response).tolist() == [-1, 0, -2, 1, -2, -2, -2, -1]


def chains(rows, documents=("one", "two")):
    """Make chains of ``(document, start, end, entity)``, where an entity of -1 is none."""
    return Chains.from_spans(*np.array(rows, int).reshape(-1, 4).T, documents=list(documents))


def system():
    """Return the chains of a system that misses one mention, invents one and is wrong about another."""
    return chains(
        [
            (0, 0, 1, 0),
            (0, 3, 3, 0),
            (0, 5, 5, -1),
            (0, 7, 9, 1),
            (0, 11, 12, 1),
            (1, 0, 0, 2),
            (1, 2, 4, 2),
            (1, 6, 6, 3),
        ]
    )


def other_system():
    return chains([(0, 0, 1, 0), (0, 3, 3, 0), (0, 7, 9, 0), (1, 0, 0, 1), (1, 2, 4, 2), (1, 6, 6, -1)])


def value(scores, name):
    """Return the number of `CoreferenceScores` that a name means."""
    if name == "conll":
        return scores.conll
    for place, of in enumerate(("recall", "precision")):
        if name.endswith(f"-{of}"):
            return scores[name.removesuffix(f"-{of}")][place]
    return scores[name].f1


def each_draw(fit, response, **more):
    """Score a response against the chains of each draw by itself."""
    keys = [cs.silver_chains(fit, draw=draw).to_chains() for draw in range(fit.truth.num_draws)]
    return [cs.score_coreference(key, response, **more) for key in keys]


@pytest.fixture(scope="module")
def fit():
    """Return a fit of the mention-pair model with few draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        return cs.fit("mpa", crowd(), coreference="links", draws=12, seed=0)


# ---- chains ----


def test_silver_chains_have_the_most_probable_label_of_each_mention():
    silver = cs.silver_chains(with_draws())
    expected = pandas.DataFrame(
        {
            "document": ["one"] * 5 + ["two"] * 3,
            "mention": list("abcdefgh"),
            "label": ["DN", "DO(a)", "NR", "DO(b)", "PR(d)", "DN", "DO(f)", "NR"],
            "probability": [1, 0.8, 0.6, 0.6, 0.6, 1, 0.6, 1],
            "entity": pandas.array([1, 1, None, 1, None, 2, 2, None], dtype="Int64"),
            "start": [0, 3, 5, 7, 8, 0, 2, 6],
            "end": [1, 3, 5, 9, 9, 0, 4, 6],
        }
    )
    pandas.testing.assert_frame_equal(silver.table, expected, check_dtype=False)
    assert str(silver.table["entity"].dtype) == "Int64"
    assert silver.num_entities == 2
    assert repr(silver) == "SilverChains(8 mentions, 2 entities, 3 mentions that refer to nothing)"


def test_chains_have_the_spans_of_the_mentions():
    found = cs.silver_chains(with_draws()).to_chains()
    assert list(found.documents) == ["one", "two"]
    assert found.document.tolist() == [0] * 5 + [1] * 3
    assert found.start.tolist() == [0, 3, 5, 7, 8, 0, 2, 6]
    assert found.end.tolist() == [1, 3, 5, 9, 9, 0, 4, 6]
    assert found.entity.tolist() == [0, 0, -1, 0, -1, 1, 1, -1]


def test_chains_are_written_and_read_again(tmp_path):
    written = cs.silver_chains(with_draws()).to_chains()
    with pytest.warns(InputWarning, match="left out: 3 mentions"):
        cs.write_conll(written, tmp_path / "silver.conll")
    scores = cs.score_coreference(written, cs.read_conll(tmp_path / "silver.conll"))
    assert scores.conll == 1
    assert scores["mentions"].f1 == 1


def test_a_draw_has_the_labels_of_that_draw():
    drawn = cs.silver_chains(with_draws(), draw=2)
    assert drawn.table["label"].tolist() == DRAWS[2].split()
    assert drawn.table["probability"].tolist() == pytest.approx([1, 0.2, 0.4, 0.2, 0.6, 1, 0.6, 1])
    assert drawn.entity.tolist() == [0, 1, 1, 2, -1, 3, 3, -1]


@pytest.mark.parametrize("draw", [-1, 5])
def test_there_is_no_such_draw(draw):
    with pytest.raises(UnknownName, match=f"no draw {draw}; there are 5, counted from 0"):
        cs.silver_chains(with_draws(), draw=draw)


def test_properties_and_what_refers_to_nothing_are_in_no_chain():
    labels = [draw.split()[4] for draw in DRAWS]
    assert {"PR(d)", "PR", "DN"} == set(labels)
    for draw, label in enumerate(labels):
        entity = cs.silver_chains(with_draws(), draw=draw).entity
        assert (entity[4] < 0) == label.startswith("PR")
        assert entity[7] < 0


def test_mentions_that_point_to_a_property_are_one_entity_without_it():
    data = annotated("one p 0 0 PR(a)\none a 1 1 DN\none c 2 2 DO(p)\none d 3 3 DO(p)")
    assert cs.silver_chains(with_draws(["PR(a) DN DO(p) DO(p)"], data)).entity.tolist() == [-1, 0, 1, 1]


def test_links_that_go_around_are_one_entity():
    with pytest.warns(InputWarning, match="lead back to this mention"):
        data = annotated("one a 0 0 DO(c)\none b 1 1 DO(a)\none c 2 2 DO(b)\none d 3 3 DN", spans=False)
    assert cs.silver_chains(with_draws(["DO(c) DO(a) DO(b) DN"], data)).entity.tolist() == [0, 0, 0, 1]


def test_without_spans_there_are_chains_but_no_places():
    fit = with_draws(data=annotated(TEXT, spans=False))
    silver = cs.silver_chains(fit)
    assert list(silver.table) == ["document", "mention", "label", "probability", "entity"]
    for failing in (
        silver.to_chains,
        lambda: cs.evaluate(fit, system()),
        lambda: cs.compare(fit, {"A": system()}),
    ):
        with pytest.raises(UnsupportedRequest, match="columns document_id, start and end"):
            failing()


def test_other_fits_have_no_chains():
    annotations = crowd().to_annotations()
    truth = LabelDraws(with_draws().truth.draws, annotations.num_labels).bound_to(annotations)
    for failing in (cs.silver_chains, lambda fit: cs.evaluate(fit, system())):
        with pytest.raises(UnsupportedRequest, match="chains need a fit of mentions"):
            failing(truth)
        with pytest.raises(UnsupportedRequest, match="a fit is expected.*NoneType"):
            failing(None)


def test_a_truth_of_other_labels_has_no_chains():
    data = crowd()
    items, other = np.arange(data.num_mentions), np.zeros(data.num_mentions, int)
    point = PointTruth(Entries.of(items, other, len(items), 3), np.ones(len(items)))
    for truth in (point, LabelDraws(other[None], 3)):
        with pytest.raises(UnsupportedRequest, match="not one label of mentions"):
            cs.silver_chains(truth.bound_to(data))


# ---- scores against the draws ----


def wider(fit):
    """Return by how much correlated errors of documents widen an interval, from the pairs of these."""
    mentions = np.bincount(fit.data.document)
    pairs = np.outer(mentions, mentions) * np.where(np.eye(len(mentions)) > 0, 1, DOCUMENT_CORRELATION)
    return np.sqrt(pairs.sum() / np.square(mentions).sum())


@pytest.mark.parametrize("singletons", [True, False])
def test_scores_are_those_of_the_chains_of_each_draw(singletons):
    fit = with_draws()
    found = cs.evaluate(fit, system(), metric=list(METRICS), singletons=singletons)
    assert list(found) == list(METRICS)
    scores = each_draw(fit, system(), singletons=singletons)
    silver = cs.score_coreference(cs.silver_chains(fit).to_chains(), system(), singletons=singletons)
    for name, score in found.items():
        draws = [value(one, name) for one in scores]
        np.testing.assert_allclose(score.draws, draws, atol=1e-12, err_msg=name)
        assert score.value == pytest.approx(np.mean(draws))
        assert score.sd == pytest.approx(wider(fit) * np.std(draws, ddof=1))
        ends = score.value + wider(fit) * (np.quantile(draws, [0.025, 0.975]) - score.value)
        np.testing.assert_allclose(score.interval, ends.clip(0, 1))
        assert score.point == pytest.approx(value(silver, name))
        assert ("singletons excluded" in score.title) != singletons
        if name in scores[0].by_document:
            of_documents = np.mean([one.by_document[name] for one in scores], axis=0)
            np.testing.assert_allclose(score.items, of_documents, atol=1e-12, err_msg=name)


def test_conll_is_the_score_that_nobody_asked_for():
    fit = with_draws()
    score = cs.evaluate(fit, system())
    np.testing.assert_array_equal(score.draws, cs.evaluate(fit, system(), metric="conll").draws)
    assert list(score.table) == ["document", "score", "mcse"]
    assert score.table["document"].tolist() == ["one", "two"]
    assert score.row()["documents"] == 2
    assert repr(score).startswith(f"CoNLL, mean F of MUC, B³ and CEAF-e: {score.value:.4f}")
    assert ", 2 documents;" in repr(score)
    assert score.interval[0] <= score.value <= score.interval[1]


def test_the_value_is_of_all_documents_together_and_not_their_mean():
    response = chains([(0, 9, 9, 0), (1, 0, 0, 1), (1, 2, 4, 1)])
    score = cs.evaluate(with_draws(DRAWS[:1]), response, metric="mentions-recall")
    assert score.items.tolist() == [0, 1]
    assert score.value == 2 / 5


def test_titles_say_recall_and_precision():
    found = cs.evaluate(with_draws(), system(), metric=["non-referring-recall", "muc-precision", "lea"])
    assert [score.title for score in found.values()] == ["non-referring recall", "MUC precision", "F of LEA"]


def test_names_of_other_scores_are_refused():
    for metric, name in (("top-1", "top-1"), (resolve("top-3"), "top-3"), (["conll", "bleu"], "bleu")):
        with pytest.raises(UnknownName, match=f"no metric is called '{name}' for mentions"):
            cs.evaluate(with_draws(), system(), metric=metric)


def test_a_document_that_the_response_lacks_has_no_right_mention():
    fit, part = with_draws(), chains([(0, 0, 1, 0), (0, 3, 3, 0)], ["one"])
    with pytest.warns(InputWarning, match="1 documents of the key are not in the response"):
        score = cs.evaluate(fit, part, metric="mentions-recall")
    assert score.items[1] == 0
    with pytest.warns(InputWarning):
        np.testing.assert_allclose(score.draws, [one["mentions"].recall for one in each_draw(fit, part)])
    with pytest.raises(InputError, match="no document of the response is in the key"):
        cs.evaluate(fit, chains([(0, 0, 1, 0)], ["three"]))


def test_mentions_of_one_span_are_kept():
    """The entities of the two mentions begin in the order of the data, in which the last of the two counts."""
    data = annotated("one a 0 0 DN\none b 4 4 DO(a)\none c 4 4 DN\none d 8 8 DO(c)")
    fit = with_draws(["DN DO(a) DN DO(c)"], data)
    response = chains([(0, 0, 0, 0), (0, 4, 4, 0), (0, 8, 8, 0)], ["one"])
    with pytest.warns(InputWarning, match="1 mentions of the key repeat"):
        found = cs.evaluate(fit, response, metric=["muc", "b3", "ceafe"])
    with pytest.warns(InputWarning, match="1 mentions of the key repeat"):
        (expected,) = each_draw(fit, response)
    for name, score in found.items():
        assert score.value == pytest.approx(expected[name].f1)


def test_parts_of_draws_do_not_change_the_scores(monkeypatch):
    whole = cs.evaluate(with_draws(), system(), metric=list(METRICS))
    monkeypatch.setattr("consilience.models.truth.chains._MOST_ROWS", 17)
    for name, score in cs.evaluate(with_draws(), system(), metric=list(METRICS)).items():
        np.testing.assert_array_equal(score.draws, whole[name].draws)
        np.testing.assert_allclose(score.items, whole[name].items, rtol=1e-12)


def test_a_fit_of_the_mention_pair_model_is_scored(fit):
    score, draws = cs.evaluate(fit, system()), each_draw(fit, system())
    assert len(draws) == 12
    assert len({one.conll for one in draws}) > 1
    np.testing.assert_allclose(score.draws, [one.conll for one in draws], atol=1e-12)
    labels = cs.silver_chains(fit).table
    assert labels["label"].tolist() == fit.labels()["label"].tolist()
    np.testing.assert_allclose(labels["probability"], fit.labels()["probability"])


def test_majority_vote_is_scored_too():
    fit = cs.fit("majority-vote", crowd(), draws=15)
    score = cs.evaluate(fit, system(), metric="b3")
    np.testing.assert_allclose(score.draws, [one["b3"].f1 for one in each_draw(fit, system())], atol=1e-12)


@st.composite
def drawn(draw):
    """Return what stands for a fit, with any labels in any order, and the chains of a system."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    num_mentions, document = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    labels = sorted(
        {(MENTION_TYPES.index(one), -1) for one in ("DN", "NR", "PR")}
        | {(MENTION_TYPES.index(one), mention) for one in ("DO", "PR") for mention in range(num_mentions)}
    )
    # Every label stands somewhere in the data, so that it has a code; where does not matter.
    type_, antecedent = np.array(labels).T
    data = Mentions(
        mention=np.arange(len(labels)) % num_mentions, annotator=np.arange(len(labels)), type=type_,
        antecedent=antecedent, document=document, start=np.arange(num_mentions) % 3, end=np.arange(num_mentions),
        num_annotations=len(labels), num_mentions=num_mentions, num_annotators=len(labels),
        num_documents=len(sizes), documents=np.array(["one", "two"][: len(sizes)], object),
        mentions=np.array([f"m{place}" for place in range(num_mentions)], object),
    )  # fmt: skip
    codes = [
        [
            code
            for code, (_, target) in enumerate(labels)
            if target < 0 or document[target] == document[mention] != mention
        ]
        for mention in range(num_mentions)
    ]
    draws = draw(st.lists(st.tuples(*(st.sampled_from(own) for own in codes)), min_size=1, max_size=4))
    fit = SimpleNamespace(data=data, truth=LabelDraws(np.array(draws), len(labels)).bound_to(data))
    span = st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, 2), st.integers(0, num_mentions))
    entities = draw(st.dictionaries(span, st.integers(-1, 2), max_size=6))
    rows = [(*span, -1 if entity < 0 else entity + 3 * span[0]) for span, entity in entities.items()]
    return fit, chains(rows, data.documents)


@settings(deadline=None, max_examples=40)
@given(drawn(), st.booleans())
def test_any_draws_are_scored_as_each_by_itself(case, singletons):
    fit, response = case
    found = cs.evaluate(fit, response, metric=list(METRICS), singletons=singletons)
    scores = each_draw(fit, response, singletons=singletons)
    for name, score in found.items():
        np.testing.assert_allclose(score.draws, [value(one, name) for one in scores], atol=1e-12, err_msg=name)


@settings(deadline=None, max_examples=40)
@given(drawn())
def test_the_chains_of_a_draw_are_right_against_that_draw(case):
    fit, _ = case
    for draw in range(fit.truth.num_draws):
        own = cs.silver_chains(fit, draw=draw)
        linked = (own.labels.type[own.label] == MENTION_TYPES.index("DO")) & (own.entity >= 0)
        target = own.labels.antecedent[own.label]
        both = linked & (own.entity[target] >= 0)
        assert np.all(own.entity[both] == own.entity[target[both]])
        recall = cs.evaluate(fit, own.to_chains(), metric="mentions-recall").draws[draw]
        assert recall == (1 if own.num_entities else 0)


# ---- leaderboards ----


def leaderboard(fit, systems, metric, seed, *, singletons):
    """Score systems by a loop over draws of the truth, and over those of the weights of documents and a pseudo-one."""
    number = fit.truth.num_draws
    weights = np.random.default_rng([seed, 0]).standard_exponential((fit.data.num_documents, number), dtype=np.float32)
    extra, scores_of_extra = pseudo_weights(seed, number), pseudo_scores(seed, len(systems), number)
    silver = cs.silver_chains(fit).to_chains()
    rows = {"truth": [], "items": [], "point": []}
    for response, of_extra in zip(systems.values(), scores_of_extra, strict=True):
        scores = each_draw(fit, response, singletons=singletons)
        mean = {part: np.mean([one.sums[part] for one in scores], axis=0) for part in scores[0].sums}
        rows["point"].append(value(cs.score_coreference(silver, response, singletons=singletons), metric))
        rows["truth"].append([value(one, metric) for one in scores])
        rows["items"].append([weighted(mean, *each, metric) for each in zip(weights.T, extra, of_extra, strict=True)])
    return {name: np.array(of_systems) for name, of_systems in rows.items()}


def weighted(sums, weight, extra, score, metric):
    """Score weighted documents, and one of mean size with the score of the pseudo-document."""
    found = {}
    for part, of_part in sums.items():
        mean = of_part.mean(axis=1)
        added = [mean[place + 1] * score if place % 2 == 0 else mean[place] for place in range(len(mean))]
        found[part] = np.column_stack([of_part * weight, np.array(added) * extra])
    return value(CoreferenceScores(sums=found, documents=range(len(weight) + 1), singletons=True), metric)


@pytest.mark.parametrize(
    ("metric", "singletons"), [("conll", True), ("conll", False), ("blanc", True), ("non-referring-recall", True)]
)
def test_systems_are_compared_as_by_a_loop(metric, singletons):
    fit, systems = with_draws(), {"A": system(), "B": other_system()}
    comparison = cs.compare(fit, systems, metric=metric, seed=3, singletons=singletons)
    expected = leaderboard(fit, systems, metric, 3, singletons=singletons)
    mean = expected["truth"].mean(axis=1, keepdims=True)
    wide = mean + wider(fit) * (expected["truth"] - mean)
    np.testing.assert_allclose(comparison.truth_draws, wide, atol=1e-12)
    np.testing.assert_allclose(comparison.table["mcse"], monte_carlo_errors(expected["truth"])[comparison.order])
    np.testing.assert_allclose(comparison.item_draws, expected["items"], atol=1e-12)
    np.testing.assert_allclose(comparison.draws, expected["items"] + comparison.shared_draws, atol=1e-12)
    np.testing.assert_allclose(comparison.values, expected["truth"].mean(axis=1))
    np.testing.assert_allclose(comparison.points, expected["point"])
    assert comparison.num_items == 2
    assert ("singletons excluded" in comparison.title) != singletons


def test_the_leaderboard_ranks_by_conll_and_prints_documents(fit):
    systems = {"A": system(), "silver": cs.silver_chains(fit).to_chains()}
    comparison = cs.compare(fit, systems)
    table = comparison.table
    assert table["system"].tolist() == ["silver", "A"]
    assert table["point_estimate"][0] == pytest.approx(1)
    alone = cs.evaluate(fit, system())
    assert comparison.truth_draws[0].std(ddof=1) == pytest.approx(alone.sd)
    assert table["mcse"][1] == pytest.approx(alone.mcse)
    assert repr(comparison).startswith("CoNLL, mean F of MUC, B³ and CEAF-e, 2 documents\n")
    assert table["p_best"].sum() == pytest.approx(1)
    assert len(comparison.pairs) == 1


def test_a_single_document_says_little_of_others():
    """It has the share w of itself and the pseudo-document, uniform between 0 and 1: F is w F + (1 - w) u."""
    fit = with_draws(["DN DO(a) NR DN", "DN DN NR DO(b)"], annotated("\n".join(TEXT.strip().splitlines()[:4])))
    comparison = cs.compare(fit, {"A": chains([(0, 0, 1, 0), (0, 3, 3, 0), (0, 7, 9, 0)], ["one"])})
    np.testing.assert_allclose(comparison.draws, comparison.item_draws, atol=1e-9)
    assert ", 1 document\n" in repr(comparison)


def test_document_weights_are_those_of_the_bayesian_bootstrap():
    """Two documents and the pseudo-one: recall is (w n + w' n' + v u N) / (w N + w' N' + v N), sizes as in a mean."""
    response = chains([(0, 0, 1, 0), (0, 3, 3, 0), (0, 7, 9, 0), (1, 9, 9, 1)])
    draws = cs.compare(with_draws(DRAWS[:1]), {"A": response}, metric="mentions-recall").draws[0]
    random = np.random.default_rng(0)
    share = random.dirichlet(np.ones(3), 200_000)
    score = stats.beta.rvs(0.5, 0.5, size=len(share), random_state=random)  # the mean of DP(1, fair coin)
    # Three mentions of three in one document and none of two in the other.
    expected = (3 * share[:, 0] + 2.5 * score * share[:, 2]) / (share @ np.array([3, 2, 2.5]))
    assert abs(draws.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(len(draws))
    for bound in (0.25, 0.5, 0.75):
        below = (expected < bound).mean()
        assert abs((draws < bound).mean() - below) < 5 * np.sqrt(below * (1 - below) / len(draws))


def test_systems_of_two_kinds_are_refused():
    predictions = Predictions.from_lists([["DN"]], items=["one/a"])
    with pytest.raises(UnsupportedRequest, match="two kinds .*: A with coreference chains and B with classes of items"):
        cs.compare(with_draws(), {"A": system(), "B": predictions})


def test_only_fits_of_mentions_compare_chains():
    with pytest.raises(UnsupportedRequest, match="chains need a fit of mentions"):
        cs.compare(LabelDraws(with_draws().truth.draws, 9), {"A": system()})
    with pytest.raises(UnknownName, match="no metric is called 'top-1' for mentions, but for items"):
        cs.compare(with_draws(), {"A": system()}, metric="top-1")
