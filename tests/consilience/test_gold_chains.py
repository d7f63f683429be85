"""Systems beside gold chains and annotators beside gold labels of mentions, on the page of coreference."""

import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy import stats

import consilience as cs
from consilience import figures, first_figures
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.reliability import reliability_table
from consilience.pages import More
from consilience.pages.beside_a_vote import beside_a_vote, voted
from consilience.pages.by_document import LEAST, share_interval
from consilience.pages.chains import chain_scores, chain_sections, found_chains, what_to_read
from consilience.pages.chains_by_gold import ChainsByGold, chains_by_gold
from consilience.pages.classes import _by_gold
from consilience.pages.close_calls import doubtful_labels
from consilience.pages.crowd import _clash
from consilience.pages.gold import beside_gold, gold_section
from consilience.pages.gold_chains import (
    annotators_by_gold,
    beside_gold_by_class,
    gold_entities,
    gold_scores,
    mark_gold,
    right_by_annotator,
)
from consilience.pages.whole_chains import Decided, Whole

_SIZE = 4  # mentions of a document


def crowd(num_documents):
    """Return a vote on mentions of documents with gold labels, and two systems with errors in some documents."""
    random = np.random.default_rng(3)
    rows, start = {name: [] for name in ("document_id", "mention_id", "annotator_id", "annotation", "gold")}, []
    gold = ["DN", "DO(m0)", "DN", "DO(m2)"]
    for document in range(num_documents):
        for who in ("ann", "bob", "eve"):
            for place in range(_SIZE):
                said = gold[place] if random.random() < 0.7 else ("DN", "DO(m0)")[place > 0]
                given = (f"d{document}", f"m{place}", who, said, gold[place])
                for name, one in zip(rows, given, strict=True):
                    rows[name].append(one)
                start.append(2 * place)
    fit = cs.fit("majority-vote", cs.read_mentions(rows | {"start": start, "end": start}))
    entity = {name: [] for name in ("good", "bad")}
    for document in range(num_documents):
        entity["good"] += [0, 0, 1, 1] if document % 3 else [0, 0, 0, 1]
        entity["bad"] += [0, 1, 2, 2] if document % 2 else [0, 0, 0, 0]
    return fit, {name: chains(own) for name, own in entity.items()}, chains([0, 0, 1, 1] * num_documents)


def chains(entity):
    number = len(entity) // _SIZE
    where = np.repeat(np.arange(number), _SIZE)
    place = np.tile(2 * np.arange(_SIZE), number)
    entity = np.asarray(entity) + 10 * where
    return cs.Chains.from_spans(where, place, place, entity, documents=[f"d{one}" for one in range(number)])


def without(chained, left_out):
    entity = np.asarray(chained.entity).reshape(-1, _SIZE)
    return chains(np.delete(entity % 10, left_out, axis=0).ravel())


def test_scores_against_gold_have_the_interval_of_documents_left_out():
    fit, systems, key = crowd(9)
    found = gold_scores(fit, systems, ["conll", "muc"], singletons=True)
    by_hand = {
        name: np.array([cs.score_coreference(without(key, one), without(system, one)).conll for one in range(9)])
        for name, system in systems.items()
    }
    half = stats.t.ppf(0.975, 8)
    for name, left_out in by_hand.items():
        value = cs.score_coreference(key, systems[name]).conll
        sd = np.sqrt(8 / 9 * ((left_out - left_out.mean()) ** 2).sum())
        low, high = found.interval(name, "conll")
        assert found.scores[name]["conll"] == pytest.approx(value)
        assert (low, high) == pytest.approx((max(value - half * sd, 0), min(value + half * sd, 1)))
        assert found.text(name, "conll").startswith(f"{value:.2f}"[:3])
    apart = by_hand["good"] - by_hand["bad"]
    sd = np.sqrt(8 / 9 * ((apart - apart.mean()) ** 2).sum())
    gap = found.scores["good"]["conll"] - found.scores["bad"]["conll"]
    low, high = (f"{gap + side * half * sd:.3f}".replace("-", "−") for side in (-1, 1))
    assert f"({low} to {high}, 95 %)" in found.ahead("conll")
    (tile,) = chain_scores(fit, systems, ["conll"], singletons=True).numbers
    low, high = found.interval("good", "conll")
    assert tile.startswith(f"CoNLL of “good” against gold ({low:.2f} to {high:.2f}, 95 %), ahead by ")
    assert "describe documents like these: each of the 9 is left out once" in found.how


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "1 document gives no interval"), (3, "3 documents (fewer than 5) give no interval")],
)
def test_too_few_documents_give_no_interval_and_that_is_said(number, said):
    fit, systems, _ = crowd(number)
    found = gold_scores(fit, systems, ["conll"], singletons=True)
    assert found.interval("good", "conll") is None
    assert said in found.how
    page = chain_scores(fit, systems, ["conll"], singletons=True)
    assert page.sections[0].blocks[0].startswith(said)
    other = found.scores["bad"]["conll"]
    assert next(iter(page.numbers)).endswith(f"; “bad” scores {other:.3f}")
    many = "one document is too little" if number == 1 else f"{number} documents are too few"
    assert page.verdict == f"{many} to tell whether system “good” or “bad” is better"


def test_annotators_are_scored_on_mentions_with_a_gold_label():
    """A link to another mention of the gold entity is right; of m3 the gold label is not known."""
    fit = cs.fit("majority-vote", cs.read_mentions({
        "mention_id": ["m0", "m1", "m2", "m3"] * 3, "annotator_id": ["ann"] * 4 + ["bob"] * 4 + ["eve"] * 4,
        "annotation": ["DN", "DO(m0)", "DO(m1)", "DN", "DN", "DO(m0)", "DO(m0)", "DN", "DN", "DN", "DN", "DO(m2)"],
        "gold": ["DN", "DO(m0)", "DO(m1)", ""] * 3,
    }))  # fmt: skip
    (part,) = annotators_by_gold(fit)
    frame = part.blocks[-1].frame.set_index("annotator")
    assert frame["right"].to_dict() == {"eve": 1, "ann": 3, "bob": 3}
    assert set(frame["labels"]) == {3}
    assert frame.index[0] == "eve"
    assert "right on 3 mentions with a gold label" in part.blocks[0]
    assert part.gist.startswith("right: “eve” 0.3")
    assert part.title == "How right each annotator is"
    assert chain_scores(fit, {}, [], singletons=True).sections == []


def test_annotators_without_gold_labels_have_no_such_table():
    labels = {"mention_id": ["m0", "m0"], "annotator_id": ["ann", "bob"], "annotation": ["DN", "DN"]}
    assert annotators_by_gold(cs.fit("majority-vote", cs.read_mentions(labels))) == []
    counts = cs.Annotations.from_counts([[2, 1]], gold=[0])
    assert annotators_by_gold(cs.fit("majority-vote", counts)) == []


@pytest.mark.parametrize(("known", "number"), [(12, 6), (11, None)])
def test_entities_of_the_gold_labels_are_counted_where_all_mentions_have_one(known, number):
    """Of three documents with two entities each; of the last mention the gold label is known or not."""
    gold = (["DN", "DO(m0)", "DN", "DO(m2)"] * 3)[:known] + [""] * (12 - known)
    document = np.repeat(["d0", "d1", "d2"], _SIZE).tolist()
    mention = [f"m{place}" for place in range(_SIZE)] * 3
    rows = {"document_id": document * 2, "mention_id": mention * 2, "annotator_id": ["a"] * 12 + ["b"] * 12}
    fit = cs.fit("majority-vote", cs.read_mentions(rows | {"annotation": ["DN"] * 24, "gold": gold * 2}))
    assert gold_entities(fit) == number
    top = cs.certainty(fit)
    _, numbers = chain_sections(fit, fit.truth, top, {}, found_chains(fit, fit.truth, top))
    assert any(name.endswith(f"; {number} in the gold labels") for name in numbers) is (number is not None)


def test_scores_against_gold_are_marked_in_the_figure_and_named(monkeypatch):
    """Where they are known no alert stands before them, and what to know of the others stands in the section."""
    fit, systems, _ = crowd(2)
    found = gold_scores(fit, systems, ["conll"], singletons=True)
    board = cs.compare(fit, systems, metric="conll")
    axes = figures.leaderboard(board)
    before = [text.get_text() for text in axes.get_legend().get_texts()]
    order = board.table["system"].tolist()
    scores = [found.scores[name]["conll"] for name in order]
    mark_gold(axes, scores)
    np.testing.assert_allclose(axes.get_lines()[-1].get_xdata(), scores)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*before, "against gold"]
    low, high = axes.get_xlim()
    assert low < min(scores)
    assert high > max(scores)
    page = chain_scores(fit, systems, ["conll"], singletons=True)
    assert page.alerts == []
    assert any("Scores against the crowd's chains have limits." in str(block) for block in page.sections[0].blocks)
    assert page.findings[0].startswith("Against the gold chains, system “good” scores ")
    assert page.findings[0].endswith(" The model's own chains score 1.000.")
    monkeypatch.setattr("consilience.pages.chains.gold_scores", lambda *_: None)
    (alert,) = chain_scores(fit, systems, ["conll"], singletons=True).alerts
    assert alert.title == "Scores against the crowd's chains have limits."


def five_mentions():
    """Return mentions of which a vote is right on m0 and m1, wrong on m2, and tied on m3 and m4."""
    said = {
        "ann": ["DN", "DO(m0)", "DN", "DN", "DN"], "bob": ["DN", "DO(m0)", "DN", "DN", "DN"],
        "cat": ["DN", "DN", "DN", "DO(m2)", "DO(m0)"], "eve": ["DN", "DO(m0)", "DO(m1)", "DO(m2)", "DO(m0)"],
    }  # fmt: skip
    rows = {"mention_id": [f"m{place}" for place in range(5)] * 4, "annotator_id": np.repeat(list(said), 5).tolist()}
    gold = ["DN", "DO(m0)", "DO(m1)", "DO(m2)", "DO(m3)"]
    rows |= {"annotation": [label for own in said.values() for label in own], "gold": gold * 4}
    return cs.read_mentions(rows | {"start": [*range(5)] * 4, "end": [*range(5)] * 4, "document_id": ["d"] * 20})


def test_a_majority_vote_is_the_baseline_and_its_ties_are_named():
    """Of m3 the gold label is one of the tied ones, of m4 not."""
    data = five_mentions()
    fit = cs.fit("mpa", data, coreference="links", method="cavi")
    found = voted(fit)
    assert (found.right, found.wrong, found.tied.tolist(), found.held) == (2, 1, [3, 4], 1)
    assert found.words(fit.truth.names()) == (
        " A majority vote gets 2 right and 1 wrong and leaves 2 ties (1 with the gold label among the tied labels). "
        "Tied: m3, m4."
    )
    assert found.clause in gold_section(beside_gold(fit), fit.truth.names()).blocks[0]
    assert voted(cs.fit("majority-vote", data)) is None


@pytest.mark.parametrize(("bins", "curve"), [([4, 17], False), ([1, 20], False), ([5, 16], True), ([16, 5], True)])
def test_bins_of_certainties_are_shown_where_there_is_something_to_compare(bins, curve):
    random = np.random.default_rng(0)
    stated = np.repeat([0.75, 0.97], bins)
    table = reliability_table(stated, (random.random(len(stated)) < stated).astype(float))
    fit = three_annotators()
    gold = beside_gold(fit)._replace(table=table, vote=None)
    part = gold_section(gold, fit.truth.names())
    opened = [block for more in part.blocks if isinstance(more, More) for block in more.blocks]
    assert any(hasattr(block, "frame") for block in opened) is curve
    assert ("Brier" in str(opened)) is curve
    assert ("too few labels of different certainties" in part.blocks[1]) is not curve


def test_annotators_by_class_stand_beside_the_gold_labels_of_that_class():
    fit = three_annotators()
    rows = [("ann", "DN", 0.6), ("ann", "DO", 0.7), ("eve", "DN", 0.5), ("eve", "DO", 0.8), ("bob", "PR", 0.4)]
    frame = beside_gold_by_class(fit, pandas.DataFrame(rows, columns=["annotator", "class", "sensitivity"]))
    assert frame.attrs["by_gold"] == ["1 of 1", "1 of 2", "1 of 1", "1 of 2", "–"]
    assert "always right" not in _clash(frame)
    clash = frame.assign(**{"right by gold": [1, 1, 0.5, 0.5, np.nan]})
    assert _clash(clash).endswith("“ann”, always right, has 0.70 (DO), while “eve”, not always right, has 0.80.")
    used = cs.fit("majority-vote", fit.data, gold="use")
    assert "by_gold" not in beside_gold_by_class(used, pandas.DataFrame(rows)).attrs


def test_wrong_labels_are_named_in_words_where_the_text_is_known(tmp_path):
    data = five_mentions()
    text = pandas.DataFrame({"document": "d", "token": range(5), "word": [f"w{place}" for place in range(5)]})
    links = cs.fit("mpa", data, coreference="links", method="cavi")
    wrong = [place for place, _ in beside_gold(links).wrong]
    assert 0 < len(wrong) <= 3
    cs.report(links, text=text, path=tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    named = ", ".join(f"w{data.start[place]} ({data.mentions[place]})" for place in wrong)
    assert f" Wrong labels, with the certainty: {named}" in re.sub(r" \(\d\.\d+\)", "", html)


def three_annotators():
    """Return a vote on four mentions; of m3 the gold label is not known, and of m2 all others say another."""
    return cs.fit("majority-vote", cs.read_mentions({
        "mention_id": ["m0", "m1", "m2", "m3"] * 3, "annotator_id": ["ann"] * 4 + ["bob"] * 4 + ["eve"] * 4,
        "annotation": ["DN", "DO(m0)", "DN", "DN", "DN", "DO(m0)", "DN", "DN", "DN", "DN", "DO(m1)", "DO(m2)"],
        "gold": ["DN", "DO(m0)", "DO(m1)", ""] * 3,
    }))  # fmt: skip


def test_what_gold_labels_say_of_annotators_stands_beside_the_doubt_about_them():
    fit = three_annotators()
    assert right_by_annotator(fit, ["eve", "ann"]) == (
        " By the gold labels, 2 of 3 labels of ann are right, 2 of 3 of eve."
    )
    assert right_by_annotator(fit, ["nobody"]) == ""
    labels = {"item": list("aabb"), "annotator": list("xyxy"), "label": list("pqpp"), "gold": list("ppqq")}
    of_labels = cs.fit("majority-vote", cs.read_annotations(labels))
    assert right_by_annotator(of_labels, ["x"]).startswith(" By gold 1 of 2 labels of x are right, 0.50 (")
    used = cs.fit("majority-vote", cs.read_annotations(labels), gold="use")
    assert right_by_annotator(used, ["x"]) == ""


@pytest.mark.parametrize(
    ("certainties", "said"),
    [
        ([1, 1, 1, 1], "Read the text: “m2” differs from its gold label (≠)"),
        ([1, 0.8, 1, 0.5],
         "Read the text: “m1” and “m3” are uncertain (dashed) and “m2” differs from its gold label (≠)"),
        ([0.5, 0.5, 0.5, 1],
         "Read the text: 3 mentions are uncertain (dashed) and “m2” differs from its gold label (≠)"),
    ],
)
def test_what_to_read_is_what_is_uncertain_or_wrong(certainties, said):
    fit = three_annotators()
    top = SimpleNamespace(items=np.array(certainties, float))
    assert what_to_read(fit.truth, top, fit.data, np.inf) == said
    first = SimpleNamespace(first=Decided(1, 0.6881, 0.8622))
    close = SimpleNamespace(items=np.array([0.88, 0.5, 1, 1]))
    told = what_to_read(fit.truth, close, fit.data, 200)
    assert told.startswith("Read the text: “m1” is uncertain (dashed), “m0” is a close call (dashed) and “m2” differs")
    gain = ". If the label of “m1” proves right, the probability of its whole chain rises from 0.69 to 0.86"
    assert what_to_read(fit.truth, top, fit.data, np.inf, first) == said + gain


def test_the_most_doubtful_labels_and_those_wrong_by_gold_are_named():
    fit = three_annotators()
    (said,) = doubtful_labels(fit.data, fit.truth, np.array([1, 0.6, 0.97, 0.95]), np.inf)
    assert said.startswith("The most doubtful label (→ is a link) is “m1”: ")
    assert re.search(r" Wrong by gold: “m2”, \S+ \(0\.97\) instead of \S+\.$", said)


@pytest.mark.parametrize(
    ("items", "right", "certainty", "said"),
    [
        (21, 20, 0.97, "The fit's labels match 20 of 21 gold labels (20.4 expected), which it did not use. With 21 "
         "gold labels this only shows that 0.77 to 0.99 of its labels are right (95 %)."),
        (400, 380, 0.95, "With 400 gold labels this only shows that 0.924 to 0.967 of its labels are right (95 %)."),
        (100, 60, 0.95, "The fit is too sure: its labels match 60 of 100 gold labels (95.0 expected), which"),
        (5, 5, 0.97, "The fit's labels match 5 of 5 gold labels (4.8 expected), which it did not use."),
    ],
)  # fmt: skip
def test_gold_labels_tell_no_more_than_their_number_does(items, right, certainty, said):
    fit = three_annotators()
    gold = beside_gold(fit)
    score = gold.score._replace(items=items, right=right / items, certainty=certainty, fitted_on=0)
    found = SimpleNamespace(unit="mention", halves=None, fit=fit, by_gold=SimpleNamespace(anchored=None))
    told = _by_gold(found, gold._replace(score=score, vote=None, voted=None, wrong=[], ends=None), fit.truth)
    assert said in told
    assert ("this only shows that" in told) is (items >= 20 and certainty < right / items + 0.1)
    assert "hold up" not in told


@pytest.mark.parametrize(
    ("entity", "told"),
    [
        ([0, 0, 1, 1], ["the same", "the same"]), ([0, 0, 0, 1], ["without m2", "also m2"]),
        ([0, 0, 1, 2], ["the same", "also m3", "also m2"]), ([0, 1, 1, 1], ["also m1", "without m1"]),
    ],
)  # fmt: skip
def test_chains_stand_beside_the_gold_chain_that_is_nearest(entity, told):
    """Of two documents, of the second of which a gold label is not known."""
    document = np.repeat(["d0", "d1"], _SIZE).tolist()
    gold = ["DN", "DO(m0)", "DN", "DO(m2)"] * 2
    mention = [f"m{place}" for place in range(_SIZE)] * 2
    rows = {"document_id": document, "mention_id": mention, "annotator_id": ["a"] * 8, "annotation": ["DN"] * 8}
    fit = cs.fit("majority-vote", cs.read_mentions(rows | {"gold": [*gold[:-1], ""]}))
    both = np.array([*entity, *(np.array(entity) + max(entity) + 1)])
    found = chains_by_gold(fit, fit.truth, SimpleNamespace(entity=both))
    number = len(told)
    named = [one.replace("d0/", "") for one in found.told]
    assert [re.sub(r"m(\d)[^ ,;]*", r"m\1", one) for one in named] == [*told, *[""] * number]
    assert found.known.tolist() == [True] * number + [False] * number
    assert found.same.tolist() == [one == "the same" for one in found.told]


def test_how_many_sure_chains_are_gold_chains_is_said_with_an_interval():
    """Of ten chains eight are sure, and of these the first is wrong."""
    whole = Whole(np.array([0.9, *[0.98] * 7, 0.6, 0.85]), np.full(10, 200.0), 1000)
    same = np.array([False, *[True] * 7, True, False])
    found = ChainsByGold(np.ones(10, bool), same, [""] * 10, np.zeros(10, int))
    low, high = wilson(7 / 8, 8)
    told = "Of the 8 chains with a probability of 0.9 or more, 7 are exactly gold chains; the model expected 7.8."
    assert found.finding(whole) == [
        f"{told} If chains were independent, the share of right chains would be {low:.2f} to {high:.2f} (95 %); the "
        "true interval is wider, because chains in one document depend on each other."
    ]
    document = np.arange(10) // 2
    low, high = share_interval(same[[*range(8)]], document[:8])
    assert f"would be {low:.2f} to {high:.2f}" in found._replace(document=document).finding(whole)[0]
    low, high = share_interval(same[[*range(8)]], np.arange(8))
    assert found._replace(document=np.arange(10)).finding(whole) == [
        f"{told} The share of right chains is {low:.2f} to {high:.2f} (95 %), allowing for chains that share a "
        "document."
    ]
    assert found.every == " Of all 10 chains, 8 are exactly gold chains."
    assert found.clause(whole) == ", and 7 of these are exactly gold chains"
    known = np.array([True, True, *[False] * 8])
    assert found._replace(known=known).clause(whole) == (
        ", and 1 of the 2 of these that have gold labels is exactly a gold chain"
    )
    assert found._replace(known=known & (whole.probability < 0.9)).finding(whole) == []


@pytest.mark.parametrize("within", [1, 4, 20])
def test_an_interval_of_mentions_by_document_is_wider_where_they_are_right_together(within):
    """Forty mentions, of which runs of that length are right or wrong together and are one document."""
    right = np.repeat(np.arange(40 // within) % 2 == 0, within)
    low, high = wilson(0.5, 40)
    own = share_interval(right, np.arange(40) // within)
    if 40 // within < LEAST:
        assert own == pytest.approx((low, high))
    else:
        assert own[0] <= low
        assert own[1] >= high
        assert bool(own[1] - own[0] > 1.5 * (high - low)) is (within == 4)


def test_a_majority_vote_stands_beside_the_fit_in_one_finding():
    score = beside_gold(three_annotators()).score._replace(items=21, right=20 / 21, certainty=0.972)
    vote = SimpleNamespace(right=15, wrong=2, tied=np.arange(4), held=4)
    told = "A majority vote matches 15 of 21 gold labels"
    assert beside_a_vote(SimpleNamespace(score=score, voted=vote)) == f"{told} and leaves 4 ties."
    vote.tied = np.arange(0)
    assert beside_a_vote(SimpleNamespace(score=score, voted=vote)) == f"{told}."


def test_the_figure_marks_the_chains_that_are_gold_chains():
    shown = np.array([0.5, 0.92, 0.99]), np.array([False, False, True])
    axes = first_figures.chains_beside_gold(["a", "b", "c"], *shown, "Probability of each chain", 0.9)
    right, wrong = axes.lines[:2]
    assert (right.get_xdata().tolist(), wrong.get_xdata().tolist()) == ([0.99], [0.5, 0.92])
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["exactly a gold chain", "not a gold chain", "certain: 0.9 or more"]
    half = np.array([0.1, 0.05, 0.05])
    axes = first_figures.chains_beside_gold(["a", "b", "c"], *shown, "Probability of each chain", 0.9, error=half)
    ends = np.array([segment[:, 0] for segment in axes.collections[-1].get_segments()])
    np.testing.assert_allclose(ends, [[0.4, 0.6], [0.87, 0.97], [0.94, 1.0]])
    assert axes.get_legend().get_texts()[-1].get_text() == "± of the number of draws"
