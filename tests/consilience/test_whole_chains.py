"""How probable a chain is as a whole: the share of draws in which exactly its mentions are one entity."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation.silver import silver_chains
from consilience.models.crowd.gate import signal
from consilience.models.majority_vote import as_annotations
from consilience.models.truth.chains import DrawnChains
from consilience.pages.chains import _spans, chain_scores, chain_sections, found_chains, mentions_verdict, worded
from consilience.pages.close_calls import close_calls, few_draws
from consilience.pages.items import digits_of, effective_draws, items_section, leading_classes
from consilience.pages.who_agrees import agreement_with_others
from consilience.pages.whole_chains import (
    Whole,
    best_to_decide,
    exactly_these,
    numbers_in_text,
    of_whole_chains,
    whole_chains,
)
from tests.consilience.test_statements import words as html_words
from tests.golden.cases import mentions


def of_draws(entity):
    """Return draws of chains; of what mentions they are is of no account."""
    return DrawnChains(np.array(entity), mentions().data)


@pytest.mark.parametrize(
    ("entity", "drawn", "expected"),
    [
        ([0, 0, 1], [[0, 0, 1], [4, 4, 4], [0, 1, 2], [7, 7, -1]], [[1, 1], [0, 0], [0, 1], [1, 0]]),
        ([0, -1, 0], [[0, -1, 0], [0, 0, 0], [0, 1, 1], [-1, -1, -1]], [[1], [0], [0], [0]]),
        ([0, 1, 2], [[2, 2, 2], [2, 1, 0]], [[0, 0, 0], [1, 1, 1]]),
        ([0, 1, 0, 1], [[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 2]], [[1, 1], [0, 0], [1, 0]]),
    ],
)
def test_a_chain_is_found_where_no_mention_is_missing_and_no_other_with_it(entity, drawn, expected):
    found = exactly_these(of_draws(drawn), np.array(entity))
    np.testing.assert_array_equal(found, np.array(expected, bool))


@pytest.fixture(scope="module")
def fit():
    return cs.fit("mpa", mentions().data, draws=50)


def test_the_page_has_each_chain_of_the_text_with_its_probability(fit):
    """Counted again by sets of mentions, draw by draw."""
    chains = silver_chains(fit)
    top = cs.certainty(fit)
    named = worded(fit, fit.truth, {})
    sections, numbers = chain_sections(fit, named, top, {}, found := found_chains(fit, named, top))
    table = next(one for one in sections if one.title == "Chains").blocks[1]
    names = fit.truth.names()
    draws = [
        {frozenset(names[own == code]) for code in np.unique(own[own >= 0])}
        for own in (silver_chains(fit, draw=draw).entity for draw in range(fit.truth.num_draws))
    ]
    assert len(table.frame) == chains.num_entities
    assert table.frame["probability of exactly these"].is_monotonic_increasing
    for row in table.frame.itertuples(index=False):
        share = np.mean([frozenset(row.mentions.split(", ")) in of_draw for of_draw in draws])
        assert row[-1] == pytest.approx(share)
        assert len(row.mentions.split(", ")) == row.number
    unsure = int((table.frame["probability of exactly these"].round(3) < 0.9).sum())
    assert not any("as a whole" in name for name in numbers)
    scored = chain_scores(fit, {}, [], singletons=True)
    sure = f"certain of {chains.num_entities - unsure} of {chains.num_entities} chains"
    close = int((found.whole.close & found.whole.sure).sum())
    close_ = f" ({close} {'a close call' if close == 1 else 'close calls'})" * bool(close)
    assert mentions_verdict(fit, top, found, None, scored).endswith(f"{sure}{close_}, but no gold label checks that.")


def test_a_chain_is_no_surer_than_its_draws_can_show(fit):
    """Neither than those of the worst quantity, nor than its own, where they hang together."""
    chains, few = silver_chains(fit), 30.0
    whole = of_whole_chains(fit.truth, chains, few)
    assert (whole.draws <= few).all()
    assert np.isfinite(whole.draws).all()
    shown = whole_chains(worded(fit, fit.truth, {}), chains, whole, 3).blocks[1].texts["probability of exactly these"]
    assert not {"1.000", "0.000"} & set(shown)
    sure = [text for text, share in zip(shown, np.sort(whole.probability), strict=True) if share == 1]
    assert set(sure) <= {"> 0.900"}


def test_runs_that_disagree_leave_a_chain_with_few_draws():
    """Two runs, in one of which two mentions are always together and in the other never."""
    entity = np.repeat([[0, 0], [0, 1]], 200, axis=0)
    truth = SimpleNamespace(num_chains=2, read_as=lambda kind: of_draws(entity))
    whole = of_whole_chains(truth, SimpleNamespace(entity=np.array([0, 0])), 400.0)
    assert whole.probability == pytest.approx([0.5])
    assert whole.draws[0] < 10


@pytest.mark.parametrize(
    ("certainty", "found"), [([0.9, 0.5, 0.75], (1, 0.5, 1.0)), ([0.9, 0.95, 0.75], (2, 0.75, 1.0)), ([1, 1, 1], None)]
)
def test_the_mention_to_decide_is_the_one_whose_chain_gains_most(certainty, found):
    """The chain of m0 and m1 is whole in two of four draws, those in which m1 links to m0; m2 is new in three."""
    drawn = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 2], [0, 1, 1]])
    label = np.array([[0, 1, 2], [0, 1, 2], [0, 3, 2], [0, 3, 4]])
    block = SimpleNamespace(units=slice(0, 3), real=label.T[:, :, None])
    truth = SimpleNamespace(read_as=lambda kind: of_draws(drawn), blocks=lambda question: [block])
    probability = np.array([1, 0.5, 0.75])
    chains = SimpleNamespace(entity=np.array([0, 0, 1]), label=np.array([0, 1, 2]), probability=probability)
    certainty = np.where(np.array(certainty) < 0.9, probability, certainty)
    assert best_to_decide(truth, chains, certainty) == found


@pytest.mark.parametrize(
    ("share", "draws", "close"),
    [(0.918, 264, True), (0.95, 264, False), (0.85, 264, False), (0.88, 264, True), (0.918, 4_000, False),
     (1.0, 20, True), (1.0, 100, False), (0.9, np.inf, False)],
)  # fmt: skip
def test_a_close_call_is_a_share_whose_draws_do_not_tell_on_which_side_of_sure_it_is(share, draws, close):
    assert close_calls(share, draws).tolist() is close


def test_a_short_run_is_said_beside_the_numbers_that_suffer_from_it():
    assert few_draws(1_000, 500, 0, 0) == []
    (said,) = few_draws(1_000, 264, 1, 2)
    assert said == (
        "This run is short: its 1,000 draws count as 264 independent ones, and 400 are recommended. A probability of "
        "0.9 is therefore known to about ± 0.04. 3 close calls may cross 0.9 with more draws: 1 chain and 2 mentions."
    )


def test_chains_that_are_in_all_draws_are_as_sure_as_the_draws_can_show():
    truth = SimpleNamespace(num_chains=2, read_as=lambda kind: of_draws([[0, 0]] * 40))
    whole = of_whole_chains(truth, SimpleNamespace(entity=np.array([0, 0])), 30.0)
    assert (whole.probability.tolist(), whole.draws.tolist(), whole.unsure) == ([1.0], [30.0], 0)


def test_chains_have_the_numbers_of_the_text():
    """Two documents, in the first of which a mention refers to nothing; single ones have no number."""
    entity = np.array([-1, 0, 1, 0, 2, 3])
    data = SimpleNamespace(document=np.array([0, 0, 0, 0, 1, 1]), num_documents=2, documents=np.array(["x", "y"]))
    chains = SimpleNamespace(entity=entity, data=data)
    named = SimpleNamespace(names=lambda: np.array(list("abcdef"), object))
    whole = Whole(np.array([0.5, 0.6, 0.7, 0.8]), np.full(4, 100.0), 100)
    table = whole_chains(named, chains, whole, 2).blocks[1]
    number = np.append(numbers_in_text(chains), 0)[entity]
    assert number.tolist() == [0, 1, 0, 1, 0, 0]
    for code, own in ((0, range(4)), (1, range(4, 6))):
        spans = _spans(number, np.ones(6, bool), np.array(own), np.array(list("abcdef"), object)[list(own)],
                       (np.arange(6), np.arange(6)), 6, ())  # fmt: skip
        shown = {"abcdef"[span.start]: span.number for span in spans}
        rows = table.frame[table.frame["document"] == "xy"[code]]
        assert {row.mentions[0]: row.chain for row in rows.itertuples()} == {
            name: shown[name] for name in rows["mentions"].str[0]
        }
    assert table.frame["mentions"].tolist() == ["b, d", "c", "e", "f"]
    assert table.texts["chain"] == ["1", "–", "–", "–"]


def test_draws_of_single_links_tell_nothing_of_whole_chains():
    fit = cs.fit("majority-vote", mentions().data)
    named, top = worded(fit, fit.truth, {}), cs.certainty(fit)
    sections, numbers = chain_sections(fit, named, top, {}, found_chains(fit, named, top))
    assert "Chains" not in [one.title for one in sections]
    assert not any("as a whole" in name for name in numbers)
    assert effective_draws(fit, cs.certainty(fit)) > 0


def test_readings_have_the_digits_of_the_certainty_and_add_up(fit):
    """Of 1,000 draws each share is one of three digits; of 100 one of two."""
    top = cs.certainty(fit)
    table = items_section(fit, worded(fit, fit.truth, {}), [top], {}, np.zeros(0, int)).blocks[-2]
    assert fit.truth.num_draws == 100
    readings = next(name for name in table.frame.columns if name.startswith("leading labels"))
    for said, certain in zip(table.frame[readings], table.texts["certainty"], strict=True):
        numbers = re.findall(r"\(([<>]? ?[\d.]+)(?: in all)?\)", said)
        assert numbers[0] == certain
        assert sum(float(one) for one in numbers if one[0] not in "<>") <= 1.0001
    truth = SimpleNamespace(num_draws=1_000)
    assert (digits_of(top, fit.truth), digits_of(top, truth)) == (2, 3)


def test_probabilities_of_readings_are_written_with_the_digits_that_are_asked_for(fit):
    place = int(np.argmin(cs.certainty(fit).items))
    (two,), (three,) = (leading_classes(fit.truth, np.array([place]), digits=digits) for digits in (2, 3))
    assert re.findall(r"\((0\.\d+)\)", three)[0] == f"{re.findall(r'[(](0[.][0-9]+)[)]', two)[0]}0"


def test_the_first_system_is_ahead_of_the_second_and_nothing_says_how_surely(fit):
    board = cs.compare(fit, mentions().systems, metric="conll").table
    found = chain_scores(fit, mentions().systems, [], singletons=True)
    said = r" It leads “poor” by (0\.(\d+)); no reliable interval of this lead is known\."
    gap, digits = re.search(said, found.findings[0]).groups()
    assert gap == f"{board['value'][0] - board['value'][1]:.{len(digits)}f}"
    shown = next(one.frame for one in found.sections[0].blocks if getattr(one, "caption", "").startswith("CoNLL of"))
    assert list(shown) == ["system", "CoNLL", "nominal 95 % from", "to"]


def test_the_agreement_of_annotators_with_the_others_is_tabulated(fit):
    z = signal(as_annotations(fit.data)).annotator_z
    (part,) = agreement_with_others(fit)
    table = part.blocks[1]
    np.testing.assert_allclose(table.frame["z"], np.sort(z))
    assert table.frame["annotator"].tolist() == fit.data.annotators[np.argsort(z)].tolist()
    assert table.frame["labels"].tolist() == [16] * 5
    assert part.gist == f"{(z < 2).sum()} of 5 annotators below 2"


def test_to_leave_out_who_may_agree_by_chance_is_a_line_that_runs(tmp_path):
    """Two say one of two labels of each mention, and a third the same each time but for a few."""
    said = np.array([["DN", "DN", "DO(m0)", "DN"] * 4, ["DN", "DN", "DO(m0)", "DN"] * 4, ["DN"] * 15 + ["NR"]])
    who = np.repeat(["a", "b", "c"], 16).tolist()
    rows = {"mention_id": [f"m{place}" for place in range(16)] * 3, "annotator_id": who}
    data = cs.read_mentions(rows | {"annotation": said.ravel().tolist()})
    fit = cs.fit("mpa", data, coreference="links", method="cavi")
    html = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    told = "Fit again without c, who may agree with the others only by chance, and see what changes. "
    line = html_words(html).partition(told)[2].partition(": ")[2].partition(" Get one more label")[0]
    assert html_words(html).count(line) == 1
    again = eval(line, {"cs": cs, "data": data})
    assert list(again.data.annotators) == ["a", "b"]
    assert (again.options["coreference"], again.method) == (fit.options["coreference"], fit.method)
