"""What a page says of which system is the best, and of what that rests on: the metric, and an assumed reliability."""

import re

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.data.accept import as_systems
from consilience.errors import UnsupportedRequest
from consilience.evaluation.classes import resolve
from consilience.pages.assumed import Assumed, _order, actions, at_other_reliabilities, finding, reliability_table
from consilience.pages.items import _plausibilities, leading_classes
from consilience.pages.other_metrics import Lead, Leads, other_leads
from consilience.pages.system_scores import _why_narrower
from consilience.pages.systems import _digits
from consilience.pages.told_apart import is_close
from tests.consilience.test_statements import section, words

# Small data are poor data, and fits of them say so.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


CLEAR, OPEN = (0.05, 0.02, 0.08), (0.05, -0.02, 0.12)


@pytest.mark.parametrize(
    ("leads", "compared", "said"),
    [
        ([], 2, ""),
        ([("b", "top-2", *OPEN)], 1, "“b” is ahead in top-2 by 0.050 (−0.020 to 0.120): no lead is clear (95 %)."),
        ([("b", "top-2", *CLEAR)], 1, "“b” is ahead in top-2 by 0.050 (0.020 to 0.080): the lead is clear (95 %)."),
        (
            [("b", "top-2", *OPEN), ("c", "set-2", *CLEAR)], 4,
            "“b” is ahead in top-2 by 0.050 (−0.020 to 0.120); “c” is ahead in set-2 by 0.050 (0.020 to 0.080): only "
            "set-2 clearly (95 % for all 4 comparisons together).",
        ),
        (
            [("b", "top-2", *CLEAR), ("b", "set-2", *CLEAR)], 2,
            "“b” is ahead in top-2 by 0.050 (0.020 to 0.080) and set-2 by 0.050 (0.020 to 0.080): all leads are clear "
            "(95 % for all 2 comparisons together).",
        ),
    ],
)  # fmt: skip
def test_a_lead_in_another_metric_has_an_interval(leads, compared, said):
    found = Leads("a", [Lead(*one) for one in leads], compared, 4, copied=False)
    assert found.words == said
    assert found._replace(copied=True).words == (said and f"If made from the annotations, {said}")


@pytest.mark.parametrize(
    ("leads", "copied", "said"),
    [
        ([], False, ""),
        ([("b", "top-2", *OPEN)], True, "“a” leads in 3 of 4 metrics and “b” in top-2: this lead is not clear"),
        (
            [("b", "top-2", *OPEN), ("b", "set-2", *OPEN)], False,
            "“a” leads in 2 of 4 metrics and “b” in 2: of other systems no lead is clear",
        ),
        (
            [("b", "top-2", *CLEAR), ("b", "set-2", *OPEN)], False,
            "“a” leads in 2 of 4 metrics and “b” in 2: of other systems only the lead in top-2 is clear",
        ),
        (
            [("b", "top-2", *CLEAR), ("c", "set-2", *CLEAR)], False,
            "“a” leads in 2 of 4 metrics, “b” in top-2 and “c” in set-2: the leads of other systems are clear",
        ),
        (
            [("b", "t-2", *CLEAR), ("c", "s-2", *OPEN)], True,
            "“a” leads in 2 of 4 metrics, “b” in t-2 and “c” in s-2: of other systems only the lead in t-2 is clear",
        ),
    ],
)  # fmt: skip
def test_that_the_metric_decides_who_is_first_is_said_in_short(leads, copied, said):
    found = Leads("a", [Lead(*one) for one in leads], 4, 4, copied)
    copies = "if predictions were made from the annotations, " * copied
    assert found.in_short == (said and f"{copies}{said}")


@pytest.mark.parametrize(
    ("leads", "said"),
    [
        ([], ""),
        (
            [("b", "top-2", *OPEN, 0.8, "it is so"), ("c", "set-2", 0.02, 0.01, 0.03, 0.4)],
            "In top-2 (it is so) “b” leads with 0.80 against 0.75 of “a”, a difference of 0.050 [−0.020, 0.120], which "
            "may be chance.",
        ),
        (
            [("b", "top-2", *CLEAR, 0.8)],
            "In top-2 “b” leads with 0.80 against 0.75 of “a”, a difference of 0.050 [0.020, 0.080].",
        ),
    ],
)
def test_the_largest_lead_in_another_metric_is_a_finding(leads, said):
    found = Leads("a", [Lead(*one) for one in leads], 2, 3, copied=False)
    assert found.furthest == said
    copied = found._replace(copied=True).furthest
    assert copied == (said and f"{said} This assumes that predictions were made from the annotations.")
    assert found.is_clear is (bool(said) and "chance" not in said)


@pytest.mark.parametrize("alike", [True, False])
def test_why_all_items_have_the_narrower_interval_is_said_where_they_have(alike, tmp_path):
    """Where nothing tells items apart, half of any items like these is right, and of these nobody knows how many."""
    counts = [[1, 1]] * 40 if alike else [[9, 0], [0, 9]] * 20
    fit = cs.fit("dirichlet", cs.Annotations.from_counts(counts), draws=400)
    systems = {"one": {"item": list(range(40)), "class": [0] * 40}}
    board = cs.compare(fit, systems, provenance="annotations")
    wide, narrow = (np.diff(np.quantile(draws, (0.025, 0.975)))[0] for draws in (board.truth_draws, board.draws))
    assert bool(narrow < wide) is alike
    assert bool(_why_narrower(board)) is alike
    html = words(cs.report(fit, systems, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    said = "Here the interval for all items like these can be narrower than the interval for these items, because the "
    assert (said in html) is alike


def ranked(orders):
    """Return a fit of the rankings of items by three annotators, who agree, and what two systems say of each item."""
    each = [(item, who, own) for item, own in enumerate(orders) for who in "xyz"]
    rows = [(item, who, rank, name) for item, who, own in each for rank, name in enumerate(own)]
    item, who, rank, name = zip(*rows, strict=True)
    data = cs.read_rankings({"item": item, "annotator": who, "rank": [1 + one for one in rank], "class": name})
    number = len(orders)
    systems = {
        own: {"item": np.repeat(np.arange(number), 2), "class": list(said) * number, "rank": [1, 2] * number}
        for own, said in (("first", "ae"), ("both", "ba"))
    }
    return cs.fit("plackett-luce", data, draws=200), systems


def test_a_single_class_that_is_left_is_named():
    """Of four classes an item has rankings of three: the fourth is plausible too."""
    rows = [("one", who, rank, name) for who in "xyz" for rank, name in enumerate("abc")]
    rows += [("two", who, rank, name) for who in "xyz" for rank, name in enumerate("abcd")]
    item, who, rank, name = zip(*rows, strict=True)
    data = cs.read_rankings({"item": item, "annotator": who, "rank": [1 + one for one in rank], "class": name})
    truth = cs.fit("plackett-luce", data, draws=200).truth
    for place in (0, 1):
        (text,) = leading_classes(truth, np.array([place]))
        assert re.fullmatch(r"a \(.*\), b \(.*\), c \(.*\) and d \(0\.\d\d\)", text)
        assert [one.label for one in _plausibilities(truth, place).rows] == list("abcd")


def test_intervals_of_leads_are_the_wider_ones_and_corrected_for_their_number():
    """Counted among the draws of differences: of these items, and of all items like these."""
    fit, given = ranked(["abcde", "bacde", "acbde"] * 4)
    systems = as_systems(fit, given, None)
    metrics = [resolve(name) for name in ("top-1", "top-2", "set-2")]
    board = cs.compare(fit, systems)
    scores = {name: cs.evaluate(fit, one, metrics) for name, one in systems.items()}
    found = other_leads(fit.truth, systems, metrics, board, scores)
    assert (found.first, found.compared, found.metrics, found.copied) == ("first", 2, 3, True)
    assert [(one.system, one.metric) for one in found.found] == [("both", one.title) for one in metrics[1:]]
    assert found.found[1].meaning == "the first 2 predicted are, as a set, the 2 most plausible classes"
    for one, metric in zip(found.found, metrics[1:], strict=True):
        assert one.value == pytest.approx(scores["both"][metric.name].value)
        assert one.ahead == pytest.approx(scores["both"][metric.name].value - scores["first"][metric.name].value)
        both = cs.compare(fit, systems, metric, provenance="annotations")
        place, first = (both.systems.index(name) for name in ("both", "first"))
        ends = [np.quantile(own[place] - own[first], (0.0125, 0.9875)) for own in (both.draws, both.truth_draws)]
        np.testing.assert_allclose([one.lower, one.upper], max(ends, key=np.ptp))


def test_a_page_says_by_how_much_systems_lead_in_each_metric(tmp_path):
    """In rankings alike one has the first class right most often, and the other the first two."""
    fit, systems = ranked(["abcde"] * 12)
    html = cs.report(fit, systems, path=tmp_path / "page.html").read_text(encoding="utf-8")
    names = words(html, "dt")
    pair = cs.compare(fit, systems).pairs.iloc[0]
    lead = next(one for one in names if one.startswith("lead of “first” over “both” ["))
    said = re.search(r"“both” \[(\S+), (\S+)\]", lead.replace("−", "-"))
    low, high = map(float, said.groups())
    np.testing.assert_allclose([low, high], pair[["lower", "upper"]].astype(float), atol=0.006)
    finding = words(html, "li")[0]
    verdict = re.search(r'<p class="verdict">(.*?)</p>', html)[1].replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(
        r"^The fit is at least 0.9 certain which class is most plausible for [^;.]*\. “first” is the best of 2 "
        "systems in top-1 accuracy with probability [^;,]* "
        r"\(it may be less\)\.$", verdict,
    )  # fmt: skip
    assert finding.startswith("The first choice of “first” is the most plausible class (top-1 accuracy) on 0.")
    # Each score has the interval that `compare` gives where the provenance is known.
    for origin, of in (("annotations", r"on 0\.\d+"), ("independent", r"itself, it is on \S+ to \S+")):
        row = cs.compare(fit, systems, provenance=origin).table.set_index("system").loc["first"]
        ends = re.search(rf"{of} \[(\S+), (\S+)\]", finding).groups()
        np.testing.assert_allclose([float(end) for end in ends], row[["lower", "upper"]].astype(float), atol=0.006)
    assert " “first” leads “both” by " in finding
    assert finding.endswith(", whether both systems looked or neither did.")
    assert words(html, "li")[1].startswith(
        "The 95 % intervals of systems on this page are probably too narrow and the probability of being the best is "
        "too sure, "
        "because they leave out errors that an annotator makes on many items."
    )
    told = words(section(html, "Leaderboard"))
    assert " If predictions were made from the annotations, “first” leads in " in told
    assert "If made from the annotations, “both” is ahead in " in told
    assert "(95 % for all 3 comparisons together). Each interval is the wider of two, for these items and for" in told
    assert "“first” leads at all of these reliabilities." in words(html)
    assert "See what depends on" not in words(html)
    # P(best) means on a page what it means in `compare`.
    heads, cells = words(html, "th"), words(html, "td")
    assert "P(best)*" in heads
    assert set(cs.compare(fit, systems).p_best_texts) <= set(cells)
    assert "* P(best) assumes that systems of unknown provenance are of one kind" in words(html)
    said = "metrics other than top-1 accuracy do not change): cs.compare(fit, predictions, provenance='annotations')"
    assert said in words(html)
    with pytest.raises(UnsupportedRequest, match="own look is counted for top-1 only"):
        cs.compare(fit, systems, "set-2", provenance="independent")


@pytest.mark.parametrize(("ranks", "tried"), [([1, 2, 3], [0.33, 3.0]), ([1, 1, 2], [3.0])])
def test_annotators_are_trusted_less_and_more_where_the_sampler_can(ranks, tried):
    """Of ties the Gibbs sampler takes whole copies alone. Where annotators are trusted more, all is more certain."""
    rows = {"item": list("aaabbb"), "annotator": list("xxxxxx"), "class": list("rstrst"), "rank": ranks * 2}
    fit = cs.fit("plackett-luce", cs.read_rankings(rows), draws=200)
    found = at_other_reliabilities(fit, {}, [])
    assert [one.reliability for one in found] == tried
    own = Assumed(1.0, cs.certainty(fit), {})
    in_order = sorted([own, *found], key=lambda one: one.reliability)
    assert [one.top.value for one in in_order] == sorted(one.top.value for one in in_order)
    words, table = reliability_table(fit, own, found, [])
    assert "Use 1 or less if something misleads all annotators alike, " in words
    assert all(one.draws <= one.top.draws.size for one in found)
    texts = [f"{one.reliability:g}{' (assumed)' * (one is own)}" for one in in_order]
    assert table.frame["reliability"].tolist() == texts
    fit.attributes["seconds"] = 1e3  # which the page would wait for
    assert not at_other_reliabilities(fit, {}, [])
    assert finding(fit, own, [], []).endswith(
        "assumes a reliability of 1 (how many independent rankings each ranking counts as); the data do not show it, "
        "and no interval allows for another value. All certainties and scores depend on it."
    )
    told = finding(fit, own, [found[-1]], [])
    assert f"At three times it (3), {found[-1].unsure} items would have a certainty below 0.9 (mean certainty " in told
    assert [one.command for one in actions(fit, [])] == ["cs.fit('plackett-luce', data, draws=200, reliability=3)"]
    assert not actions(fit, found)


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        (
            {"a": 0.501, "b": 0.41}, {"a": 0.354, "b": 0.349},
            "“a” and “b” have the same score, to two digits, at reliability 0.33; “a” leads at reliability 1.",
        ),
        ({"a": 0.5, "b": 0.4}, {"a": 0.3, "b": 0.4}, "“b” leads at reliability 0.33; “a” leads at reliability 1."),
        ({"a": 0.5, "b": 0.4}, {"a": 0.5, "b": 0.4}, "“a” leads at all of these reliabilities."),
        ({"a": 0.5}, {"a": 0.3}, ""),
    ],
)  # fmt: skip
def test_whether_systems_change_places_where_annotators_are_trusted_less_is_said(own, other, said):
    found = [Assumed(trusted, None, scores) for trusted, scores in ((1.0, own), (0.33, other))]
    text = _order(*found[:1], found[1:], [resolve("top-1")])
    assert text.endswith(said)
    assert bool(text) is bool(said)


@pytest.mark.parametrize(
    ("low", "high", "is_open"), [(0.0, 0.04, False), (0.3, 0.6, True), (0.96, 0.99, False), (0.0, 0.999, True)]
)
def test_which_of_the_first_two_is_better_is_open_where_either_may_be(low, high, is_open):
    class Board:
        table = pandas.DataFrame({"system": ["a", "b"]})
        pairs = pandas.DataFrame({"p_a_beats_b_lower": [low], "p_a_beats_b_upper": [high]})

    assert is_close(Board()) is is_open
    Board.table = Board.table.head(1)
    assert not is_close(Board())


@pytest.mark.parametrize(("uncertainty", "digits"), [("ties", 2), ("shares", 3)])
def test_scores_by_a_vote_have_two_digits(uncertainty, digits):
    data = cs.Annotations.from_counts(np.tile([[3, 0], [2, 1]], (60, 1)), labels=["x", "y"])
    fit = cs.fit("majority-vote", data, uncertainty=uncertainty)
    assert _digits(fit, 0.78, 0.81) == digits


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("plackett-luce", "how many independent rankings each ranking counts as, and these data do not show it. Use 1"),
        ("prirn", "how many annotators an item counts as having, and these data do not show it. Use the number of "),
    ],
)
def test_what_the_reliability_is_depends_on_the_model(member, said, tmp_path):
    fit = cs.fit(member, ranked(["abcde"] * 3 + ["acbde"] * 3)[0].data, draws=64)
    html = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"The reliability says {said}" in words(html)
