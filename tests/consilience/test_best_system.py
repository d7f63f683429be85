"""What a page says of which system is the best, and of what that rests on: the metric, and an assumed reliability."""

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.evaluation.classes import resolve
from consilience.pages.assumed import Assumed, _order, actions, at_other_reliabilities, finding, reliability_table
from consilience.pages.systems import _digits, _is_close, ahead_by_most, leaders, other_leaders
from tests.consilience.test_statements import words

# Small data are poor data, and fits of them say so.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def test_another_system_that_leads_by_other_metrics_is_named():
    class Ranked:
        table, own_draws = pandas.DataFrame({"system": ["a", "b"]}), None

    metrics = [resolve(name) for name in ("top-1", "top-2", "set-2")]
    values = {"a": (0.5, 0.6, 0.7), "b": (0.4, 0.65, 0.7)}
    scores = {
        name: {one.name: cs.Score(title="t", items=np.full(2, value), draws=np.zeros(0)) for one, value in zip(
            metrics, own, strict=True)}
        for name, own in values.items()
    }  # fmt: skip
    said = " Which is best depends on the metric: “b” leads in top-2 accuracy (0.65 against 0.60), "

    def others(metrics):
        return other_leaders(scores, leaders(scores, metrics, Ranked()), Ranked())

    assert others(metrics) == f"{said}beyond chance (see Leaderboard)."
    # By hand: the differences 0.15 and -0.05 of two items have the mean 0.05 and the standard error 0.1.
    scores["b"]["top-2"].items[:] = [0.75, 0.55]
    assert others(metrics) == f"{said}in none beyond chance (see Leaderboard)."
    assert others(metrics[:1]) == others(metrics[::2]) == ""
    # Of equal means the first of the comparison has the metric.
    assert leaders(scores, metrics, Ranked()) == {"a": [metrics[0], metrics[2]], "b": [metrics[1]]}


@pytest.mark.parametrize(
    ("leads_in", "said"),
    [({"a": [1], "b": [2, 3, 4]}, "b"), ({"a": [1, 2], "b": [3, 4]}, "b"), ({"a": [1, 2, 3], "b": [4]}, ""),
     ({"a": [1, 2], "b": [3]}, ""), ({"a": [1], "b": []}, ""), ({"a": [1, 2], "b": [3], "c": [4]}, "")],
)  # fmt: skip
def test_a_system_that_leads_by_most_other_metrics_is_ahead(leads_in, said):
    assert ahead_by_most(leads_in, "a") == said


def test_no_system_is_called_the_best_where_another_leads_by_most_metrics(tmp_path):
    """In rankings alike one has the first class right most often, and the other the first two."""
    order = [list("abcde")] * 12
    rows = [(item, who, rank, name) for item, own in enumerate(order) for who in "xyz" for rank, name in enumerate(own)]
    item, who, rank, name = zip(*rows, strict=True)
    data = cs.read_rankings({"item": item, "annotator": who, "rank": [1 + one for one in rank], "class": name})
    systems = {
        own: {"item": np.repeat(np.arange(12), 2), "class": list(said) * 12, "rank": [1, 2] * 12}
        for own, said in (("first", "ae"), ("both", "ba"))
    }
    fit = cs.fit("plackett-luce", data, draws=50)
    html = cs.report(fit, systems, path=tmp_path / "page.html").read_text(encoding="utf-8")
    names = words(html, "dt")
    assert "metrics in which “both” has the higher mean; “first” in 2" in names
    assert "is best in" not in " ".join(names)
    finding = next(one for one in words(html, "li") if one.startswith("“first” scores"))
    assert " Which is best depends on the metric: “both” leads in " in finding
    assert len(finding.split()) <= 65
    assert "“first” leads at all of these." in words(html)
    assert "See what rests on" not in words(html)


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
    (table,) = reliability_table(fit, own, found, [])
    texts = [f"{one.reliability:g}{' (assumed)' * (one is own)}" for one in in_order]
    assert table.frame["reliability"].tolist() == texts
    fit.attributes["seconds"] = 1e3  # which the page would wait for
    assert not at_other_reliabilities(fit, {}, [])
    assert finding(fit, own, [], []).endswith("scores rest on it: fit with 3, say, to see how far.")
    assert [one.command for one in actions(fit, [])] == ["cs.fit('plackett-luce', data, reliability=3)"]
    assert not actions(fit, found)


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        ({"a": 0.501, "b": 0.41}, {"a": 0.354, "b": 0.349}, "“a” and “b” tie at 0.33; “a” leads at 1."),
        ({"a": 0.5, "b": 0.4}, {"a": 0.3, "b": 0.4}, "“b” leads at 0.33; “a” leads at 1."),
        ({"a": 0.5, "b": 0.4}, {"a": 0.5, "b": 0.4}, "“a” leads at all of these."),
        ({"a": 0.5}, {"a": 0.3}, ""),
    ],
)
def test_whether_systems_change_places_where_annotators_are_trusted_less_is_said(own, other, said):
    found = [Assumed(trusted, None, scores) for trusted, scores in ((1.0, own), (0.33, other))]
    text = _order(*found[:1], found[1:], [resolve("top-1")])
    assert text.endswith(said)
    assert bool(text) is bool(said)

# ---- in a browser ----

MEASURE = """<script>
const frame = document.createElement("iframe");
frame.style = "border:0;width:WIDTHpx;height:900px"; frame.srcdoc = document.getElementById("page").textContent;
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement, sort = page.querySelector("button.sort");
  page.querySelectorAll("details").forEach((one) => { one.open = true; });
  sort.click();
  const unnamed = [...page.querySelectorAll("button, input, a, summary")].filter((one) =>
    !(one.textContent.trim() || one.getAttribute("aria-label")));
  document.body.textContent = [
    root.scrollWidth, root.clientWidth, page.querySelectorAll("script").length, "hit" in frame.contentWindow,
    unnamed.length, frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    sort.parentElement.getAttribute("aria-sort")].join(" ");
};
document.body.append(frame);
</script>"""


@pytest.mark.parametrize(
    ("low", "high", "is_open"), [(0.0, 0.04, False), (0.3, 0.6, True), (0.96, 0.99, False), (0.0, 0.999, True)]
)
def test_which_of_the_first_two_is_better_is_open_where_either_may_be(low, high, is_open):
    class Board:
        table = pandas.DataFrame({"system": ["a", "b"]})
        pairs = pandas.DataFrame({"p_a_beats_b_lower": [low], "p_a_beats_b_upper": [high]})

    assert _is_close(Board()) is is_open
    Board.table = Board.table.head(1)
    assert not _is_close(Board())


@pytest.mark.parametrize(("uncertainty", "digits"), [("ties", 2), ("shares", 3)])
def test_scores_by_a_vote_have_two_digits(uncertainty, digits):
    data = cs.Annotations.from_counts(np.tile([[3, 0], [2, 1]], (60, 1)), labels=["x", "y"])
    fit = cs.fit("majority-vote", data, uncertainty=uncertainty)
    assert _digits(fit, 0.78, 0.81) == digits
