"""The report is one self-contained page, whatever the model, the data and the names in them."""

import base64
import dataclasses
import hashlib
import html
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from matplotlib.figure import Figure

import consilience as cs
from consilience import pages
from consilience.cli import main
from consilience.errors import OutputRefused, UnsupportedRequest
from consilience.evaluation.leave_one_out import annotator_agreement
from consilience.inference.generic import GenericRun
from consilience.inference.posterior import Quantity, Worst
from consilience.inference.results import Result
from consilience.models import dirichlet
from consilience.models.posterior import Draws
from consilience.models.truth import PlausibilityDraws
from consilience.models.truth.plausibilities import OtherMass
from consilience.models.truth.truth import KINDS
from consilience.notes import Level, Note
from consilience.pages import Code, More, Section, next_classes, run, script, write_page
from consilience.reporting import PAGES, _asked, report

EVIL, DOLLAR = "<script>alert(1)</script>", "a$b_c$d"
AGREEMENT_PARTS = ["Agreement", "Agreement by label", "Annotators", "As annotations arrived", "Corrected for chance",
                   "What more annotations would give"]  # fmt: skip
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are balanced; keeps ids, links, styles, headings and the text of each tag."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.links, self.headings, self.tags = [], [], [], [], []
        self.text = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[name] for name in ("src", "href", "xlink:href", "srcset", "data") if name in attrs]
        assert not any(name.startswith("on") for name in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)
            if self.open[-2:] == ["summary", "h2"]:
                self.headings.append(data)


def checked(path):
    """Return the parsed page after the checks that every page has to pass."""
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    inside = {f"#{name}" for name in page.ids}
    assert all(link in inside or link.startswith("data:image/png;base64,") for link in page.links)
    assert set(re.findall(r"url\((#[^)]*)\)", html)) <= inside
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []
    assert not {"link", "iframe", "object", "embed", "base", "img"} & set(page.tags)
    assert page.tags.count("script") == 1
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()}'" in html
    assert html.count(f"<script>{script()}</script>") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    return page


def annotations():
    items, labels = [EVIL, DOLLAR, "\u65e5\u672c", "plain"], ["_u", EVIL, "v"]
    rows = [(item, f"r{r}", labels[(k * r) % 3]) for k, item in enumerate(items) for r in range(5)]
    item, annotator, label = zip(*rows, strict=True)
    return cs.read_annotations({"item": item, "annotator": annotator, "label": label})


@pytest.fixture(scope="module")
def fit():
    return cs.fit("dirichlet", annotations(), draws=64)


def predictions(fit, shift=0, depth=1, name="system"):
    items, classes = fit.truth.ids["item"], list(fit.truth.ids["class"])
    lists = [[classes[(k + shift + d) % len(classes)] for d in range(depth)] for k in range(len(items))]
    return cs.Predictions.from_lists(lists, items=items, classes=classes, name=name)


def test_report_has_its_parts_in_order_and_escapes_ids(fit, tmp_path):
    systems = {EVIL: predictions(fit, depth=2), DOLLAR: predictions(fit, 1, 2), "same": predictions(fit, 1, 2)}
    risk = cs.ClassMap.from_codes([0, 1, 1], classes=fit.truth.ids["class"], groups=["0", "2"])
    extra = Section("An extra part", ["one & two", Markup("<em>three</em>")])
    path = report(fit, systems, path=tmp_path / "report.html", class_groups=risk, title=EVIL, sections=[extra])
    page = checked(path)
    assert page.headings == [
        "Leaderboard", "Items", "Risk", "Agreement and model check", "An extra part", "What was run",
    ]  # fmt: skip
    assert EVIL in page.text["h1"]
    assert EVIL in page.text["td"]
    assert DOLLAR in page.text["td"]
    assert {EVIL, DOLLAR} <= set(page.text["text"])
    assert "Scores of each system" in page.text["summary"]  # in one metric, as there are three classes
    assert page.text["h3"] == ["Agreement with the others", "Whether the model expects this agreement"]
    assert "one & two" in page.text["p"]
    assert page.text["em"] == ["three"]


@pytest.mark.parametrize("risk", [None, {"class": ["_u", EVIL, "v"], "group": [0, 1, 1]}])
def test_report_prints_the_numbers_of_the_library(fit, tmp_path, risk):
    systems = {"A": predictions(fit), "B": predictions(fit, 1)}
    page = checked(report(fit, systems, path=tmp_path / "report.html", class_groups=risk))
    cells = page.text["td"]
    for row in cs.compare(fit, systems).table.itertuples():
        at = cells.index(row.system)
        ends = [float(end) for end in cells[at + 1].split("–")]  # from the lowest reading to the highest, not between
        assert ends == pytest.approx([row.value_alone, 2 * row.value - row.value_alone], abs=0.0051)
        assert [float(end) for end in cells[at + 2].split(" to ")] == pytest.approx([row.lower, row.upper], abs=0.0051)
        at = cells.index(row.system, at + 1)  # what the score is made of
        shown = [float(cells[at + place]) for place in (2, 3)]
        assert shown == pytest.approx([row.sd_items, row.value_alone], abs=0.0051)
    for score in (cs.certainty(fit), cs.certainty(fit, top=2)):
        at = cells.index(score.title.removesuffix(", exact").replace("classes", "labels").replace("class", "label"))
        assert cells[at + 1 : at + 3] == [f"{score.value:.3f}", f"{score.items.min():.3f}"]
    score = cs.evaluate(fit, systems["B"])
    # On one page one number for one thing: as annotators alone have it, on the leaderboard and below it.
    own = cells[cells.index("B", cells.index("accuracy")) :]
    shown = [float(cell) for cell in (*own[1:3], *own[3].split(" to "))]
    assert shown == pytest.approx([score.value, score.sd, *score.interval], abs=0.0051)
    assert "if made from the annotations" in page.text["th"]


def test_every_kind_of_truth_has_a_page():
    assert set(PAGES) == {kind.name for kind in KINDS}


def test_the_same_fit_gives_the_same_bytes(fit, tmp_path):
    first, second = (report(fit, path=tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_a_single_system_has_no_ranking(fit, tmp_path):
    page = checked(report(fit, predictions(fit, name="alone"), path=tmp_path / "report.html"))
    assert page.headings[0] == "Score of the system"
    assert "P(best)" not in page.text["th"]


def test_metrics_given_as_a_list_are_those_reported(fit, tmp_path):
    systems = {"A": predictions(fit, depth=2)}
    page = checked(report(fit, systems, path=tmp_path / "report.html", metric=["set-2", "top-1"]))
    assert [text for text in page.text["td"] if "accuracy" in text] == ["set-2 accuracy", "top-1 accuracy"]


def test_agreement_has_the_weights_of_the_fit(tmp_path):
    """Of two tied classes each counts 1/2 by equation 14, and 1 in the published code."""
    ranked = {"item": ["a"] * 8, "annotator": list("xxxyyvwu"), "class": list("pqrpqssp"), "rank": [1] * 8}
    data = cs.read_rankings(ranked)
    path = cs.report(cs.fit("irn", data, rank_weights="published-code"), path=tmp_path / "report.html")
    own, other = (annotator_agreement(data, one).value for one in ("published-code", "equation-14"))
    assert own != other
    text = path.read_text()
    assert f"names that class at any rank; if several classes lead, any of them counts. It is {own:.2f} on av" in text
    assert re.search(r"same first choice as the others 0\.\d\d, by chance 0\.\d\d", text)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_point_estimate_says_that_it_is_one(tmp_path, depth):
    cases = cs.load("stutz-2023-cases")
    fit = cs.fit("irn", cases)
    systems = {"A": predictions(fit, depth=depth), "B": predictions(fit, 1, depth)}
    page = checked(report(fit, systems, path=tmp_path / "report.html"))
    assert any("certainty of every item is 1" in text for text in page.text["p"])
    assert "worst draw" not in page.text["th"]
    assert "sd from truth" not in page.text["th"]


def test_rankings_are_reported_with_their_depth(tmp_path):
    fit = cs.fit("prirn", cs.load("stutz-2023-cases"), draws=64, reliability=30)
    page = checked(report(fit, {"A": predictions(fit, depth=3)}, path=tmp_path / "report.html"))
    titles = {"top-3 accuracy", "top-1 accuracy", "set-2 accuracy", "set-3 accuracy", "average overlap@3"}
    assert titles <= set(page.text["td"])
    assert "certainty of the set of the top 3 classes" in page.text["td"]


def test_the_mass_of_classes_that_nobody_named_is_shown(tmp_path):
    fit = cs.fit("prirn", cs.load("stutz-2023-cases"), draws=64, reliability=30)
    drawn = dataclasses.replace(fit)
    entries, num_items = fit.truth.entries, fit.truth.num_units
    weight = np.random.default_rng(0).gamma(1.0, size=(64, len(entries.class_)))
    other = OtherMass(np.zeros((64, num_items)), 1.0, jax.random.key(0))
    truth = PlausibilityDraws(entries, np.log(weight), other)
    truth.ids, calls = fit.truth.ids, []
    truth.point = lambda: calls.append(1) or fit.truth.standard()
    vars(drawn)["truth"] = truth
    page = checked(
        report(drawn, {"A": predictions(fit, depth=3), "B": predictions(fit, 1, 3)}, path=tmp_path / "r.html")
    )
    expected = []
    for start, stop in zip(entries.first, entries.first[1:], strict=False):
        shares = weight[:, start:stop] / (1 + weight[:, start:stop].sum(axis=1, keepdims=True))
        others = fit.truth.num_classes - min(3, stop - start)
        expected.append(f"{others} more ({1 - np.sort(shares.mean(axis=0))[-3:].sum():.2f}{' in all' * (others > 1)})")
    shown = [text.split(" and ")[-1] for text in page.text["td"] if " more (" in text]
    assert sorted(shown) == sorted(expected)
    assert calls == [1]


def test_ratings_have_two_classes(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"item": np.repeat(np.arange(20), 3), "annotator": np.tile(np.arange(3), 20)})
    frame["rating"] = random.normal(size=60)
    fit = cs.fit("normal-inverse-gamma", cs.read_ratings(frame), threshold=0.0, draws=64)
    page = checked(report(fit, predictions(fit), path=tmp_path / "report.html"))
    assert any(text.startswith("Certainties of the side were computed in closed form") for text in page.text["p"])
    assert "certainty of the set of the top 2 classes" not in page.text["td"]
    assert {"above", "below"} <= set(page.text["td"])
    assert page.headings[:2] == ["Items", "Score of the system"]
    assert "Agreement and model check" not in page.headings


def test_label_draws_rank_one_class(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"item": np.repeat(np.arange(6), 2), "annotator": np.tile(np.arange(2), 6)})
    frame["rating"] = random.normal(size=12)
    exact = cs.fit("normal-inverse-gamma", cs.read_ratings(frame), threshold=0.0, draws=64)
    fit = dataclasses.replace(exact, method="nuts", posterior=Draws(exact.samples()))
    page = checked(report(fit, predictions(fit, depth=2), path=tmp_path / "report.html"))
    assert any("said when it was fitted" in text for text in page.text["p"])
    assert not any("in closed form" in text for text in page.text["p"])


def test_one_item_and_one_annotator_are_enough(tmp_path):
    data = cs.read_annotations({"item": ["i"], "annotator": ["r"], "label": ["a"]}, labels=["a", "b"])
    fit = cs.fit("dirichlet", data, draws=64)
    page = checked(report(fit, predictions(fit), path=tmp_path / "report.html"))
    assert "Agreement and model check" not in page.headings


def test_the_code_to_reproduce_names_what_was_run(fit):
    code = run.reproduction(fit, {})
    assert "cs.fit('dirichlet', data, method='exact', draws=64, seed=0)" in code
    assert fit.attributes["data_hash"][:12] in code
    own = cs.fit("dirichlet", annotations(), dirichlet.Priors(plausibility=dirichlet.Symmetric(1.0)))
    assert "priors=priors" in run.reproduction(own, {})
    half = cs.fit("dirichlet", annotations(), draws=64, reliability=0.5)
    assert "draws=64, reliability=0.5, seed=0)" in run.reproduction(half, {})


def test_the_code_to_reproduce_runs_as_typed(tmp_path, monkeypatch):
    """Of files; what was in memory it leaves to the reader."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text("item,annotator,label\n1,a,x\n1,b,x\n2,a,y\n2,b,x\n")
    (tmp_path / "system.csv").write_text("item,label\n1,x\n2,y\n")
    (tmp_path / "other.csv").write_text("item,label\n1,y\n2,y\n")
    assert main(["fit", "majority-vote", "labels.csv", "-o", "run"]) == 0
    files = ["--predictions", "system.csv", "--predictions", "other.csv"]
    assert main(["report", "run", *files, "-o", "page.html"]) == 0
    code = html.unescape(re.search(r"<code>(import consilience.*?)</code>", (tmp_path / "page.html").read_text("utf-8"),
                                   re.DOTALL)[1])  # fmt: skip
    exec(code, {})
    made = (tmp_path / "report.html").read_text("utf-8")
    assert ">other<" in made
    assert "“system”" in made
    fit = cs.load_fit("run")
    assert "predictions = …" in run.reproduction(fit, {"a": SimpleNamespace(file="")})


@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        ({}, "path='report.html')"), ({"text": "words.conll"}, "path='report.html', text='words.conll')"),
        ({"text": Path("words.conll"), "singletons": False}, "text='words.conll', singletons=False)"),
        ({"text": ["a.conll", Path("b.conll")]}, "text=['a.conll', 'b.conll'])"),
        ({"text": pd.DataFrame()}, "\ntext = …  # the words of the documents\ncs.report(fit, path='report.html', "
         "text=text)"),
        ({"class_groups": object()}, "class_groups = …  # the groups of classes\ncs.report(fit, path='report.html', "
         "class_groups=class_groups)"),
        ({"provenance": {"a": "independent"}}, "provenance={'a': 'independent'})"),
    ],
)  # fmt: skip
def test_the_code_to_reproduce_has_what_the_page_was_asked_for(fit, asked, ends):
    assert run.reproduction(fit, {}, asked).endswith(ends)


def test_arguments_at_their_defaults_are_not_written():
    words = pd.DataFrame({"document": ["d"]})
    given = {"metric": None, "missing": "error", "unknown": "drop", "singletons": True, "text": words, "title": None}
    assert {name: value is words for name, value in _asked(given).items()} == {"unknown": False, "text": True}


def test_every_kind_of_block_is_rendered(tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([0, 1], [0, 1], "o")
    blocks = ["<i>", Code("a < b"), pd.DataFrame({"x": [1, 2], "<y>": [0.12345, np.nan]}), figure, [figure, figure],
              {"items": 1234}]  # fmt: skip
    rows = [pages.Bar("up", 2.0, "+2", 1.0), pages.Bar("at", 0.5, "0.5", 0.0, (0.2, 0.9), [0.1])]
    bars = pages.Bars(rows, "b", ("", "", ""))
    words = pages.Text("d", ["<a>", "b", "c"], [
        pages.Span(0, 1, 1, True, "<tip>"), pages.Span(1, 2, 2, True, "crosses"), pages.Span(1, 1, 3, False, "inside"),
    ])  # fmt: skip
    table = pages.Table(pd.DataFrame({"n": [3.0, np.nan]}), "long", total=9, of="x")
    blocks += [bars, words, pages.Heading("<h>"), table]
    parts = [Section("<s>", blocks), Section("<s>", [])]
    page = checked(write_page(pages.Page("t", "line", parts), tmp_path / "page.html"))
    assert page.tags.count("svg") == 3
    assert page.headings == ["<s>", "<s>"]
    assert "a < b" in page.text["code"]
    assert page.text["td"] == ["1", "0.123", "2", "–", "+2", "0.5", "3", "–"]
    assert "1,234" in page.text["dd"]
    assert page.text["sub"] == ["3", "1"]  # spans that cross another are left out
    html = re.sub(r"<sub>(\d)</sub>", r"_\1", (tmp_path / "page.html").read_text())
    assert "[&lt;a&gt; b_3]_1 c" in re.sub(r"</?span[^>]*>", "", html)  # of two that end at one word the longer one
    assert page.text["h3"] == ["d", "<h>"]
    assert page.text["caption"] == ["<s>", "b", "long Shown are 2 of 9; all: consilience table RUN x"]
    with pytest.raises(UnsupportedRequest, match="a block is int"):
        write_page(pages.Page("t", "", [Section("s", [3])]), tmp_path / "page.html")


def test_the_script_writes_text_alone_and_fetches_nothing():
    forbidden = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval", "fetch", "Function", "import")
    assert not [word for word in forbidden if word in script()]


def test_a_page_that_fails_leaves_the_earlier_one_and_no_rest(fit, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("earlier")
    with pytest.raises(UnsupportedRequest, match="object"):
        write_page(pages.Page("t", "", [Section("s", [object()])]), path, force=True)
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OutputRefused, match="report.html exists; .*force=True"):
        write_page(pages.Page("t", ""), path)
    with pytest.raises(OSError, match="full"):
        write_page(pages.Page("t", ""), path, force=True)
    assert path.read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


# ---- agreement ----


def crowd(num_items=60, num_annotators=6, mixed=False):
    random = np.random.default_rng(0)
    rows = []
    for item in range(num_items):
        for who in random.choice(num_annotators, random.integers(1, num_annotators), replace=False):
            label = EVIL if random.random() < 0.7 + 0.2 * (item % 2) else DOLLAR
            rows.append((f"item {item}", f"{EVIL}{who}", label))
    rows = [rows[row] for row in random.permutation(len(rows))] if mixed else rows  # else in no order of arrival
    return cs.read_annotations(pd.DataFrame(rows, columns=["item", "annotator", "label"]))



def test_a_page_of_agreement(tmp_path):
    found = cs.agreement(crowd(mixed=True))
    page = checked(cs.report(found, path=tmp_path / "agreement.html"))
    assert page.headings == [*AGREEMENT_PARTS[:2], "Items that agree least", *AGREEMENT_PARTS[2:], "What was run"]
    assert page.tags.count("svg") == 7
    assert f"{found.value:.2f}" in page.text["dd"]  # with the digits of the interval of others like them
    assert str(found.dependence) in page.text["p"]
    assert not found.dependence.found
    assert not any(str(found.dependence) in text for text in page.text["li"])  # it is no warning
    monitor = found.monitor()
    first = monitor["items"][np.isfinite(monitor["lower"])].iloc[0]
    said = " ".join(page.text["p"])
    assert f"begins at item {first}. From there on it holds at all times at once, approximately" in said
    with pytest.raises(UnsupportedRequest, match="report a fit"):
        cs.report(found, predictions(cs.fit("dirichlet", crowd(), draws=8, alpha=1)), path=tmp_path / "no.html")


def test_a_page_of_agreement_shows_what_counts_can_tell(tmp_path):
    counts = cs.data.Annotations.from_counts(np.random.default_rng(0).integers(0, 4, (50, 3)))
    page = checked(cs.report(cs.agreement(counts), path=tmp_path / "agreement.html"))
    parts = [part for part in AGREEMENT_PARTS if part not in ("Annotators", "As annotations arrived")]
    assert page.headings == [*parts[:2], "Items that agree least", *parts[2:], "What was run"]


def test_a_page_of_agreement_without_any_pair(tmp_path):
    alone = cs.read_annotations({"item": ["i", "j"], "annotator": ["r", "r"], "label": ["a", "b"]})
    page = checked(cs.report(cs.agreement(alone), path=tmp_path / "agreement.html"))
    assert page.headings == []
    assert any("nothing is known of the agreement" in text for text in page.text["li"])


def test_a_fit_is_checked_by_the_agreement(tmp_path):
    fit = cs.fit("dirichlet", crowd(mixed=True), draws=64, alpha=1)
    page = checked(report(fit, path=tmp_path / "report.html"))
    assert page.text["h3"] == ["Agreement with the others", "Whether the model expects this agreement"]
    inside = [text.split(":")[0] for text in page.text["summary"] if text.split(":")[0] in AGREEMENT_PARTS]
    assert inside == AGREEMENT_PARTS
    assert cs.agreement(fit).verdict in page.text["p"]


# ---- what opens, and what stands beside what ----


def drawn():
    return Figure(figsize=(2, 1)).subplots()


@pytest.mark.parametrize(
    ("blocks", "cells"),
    [
        ([drawn(), "a", "b"], [["figure"], ["a", "b"]]), (["a", "b", drawn()], [["a", "b"], ["figure"]]),
        (["a", drawn(), "b"], [["a"], ["figure"]]), ([drawn(), "announced:", {"x": 1}], []),
        ([[drawn(), drawn()], "a"], []), ([drawn()], []), ([drawn(), drawn(), "a"], [["figure"], ["a"]]),
    ],
)  # fmt: skip
def test_a_figure_alone_in_its_row_stands_beside_what_explains_it(tmp_path, blocks, cells):
    parts = [Section("s", blocks), Section("other", [More("m", blocks)])]
    path = write_page(pages.Page("t", "", parts), tmp_path / "p.html")
    text = path.read_text(encoding="utf-8")
    checked(path)
    found = re.findall(r'<div class="beside">\s*<div>(.*?)</div>\s*<div>(.*?)</div>\s*</div>', re.sub(
        r'<div class="figures">.*?</div>', "<p>figure</p>", text, flags=re.DOTALL
    ), re.DOTALL)  # fmt: skip
    assert [[re.findall("<p>(.*?)</p>", cell) for cell in one] for one in found] == [cells] * (2 if cells else 0)


def test_what_opens_on_a_click_is_closed_and_keeps_its_blocks(tmp_path):
    table = pd.DataFrame({"x": [1]})
    blocks = [More("how", ["words", table, More("deeper", ["more words"])]), table]
    path = write_page(pages.Page("t", "", [Section("s", blocks)]), tmp_path / "p.html")
    page, text = checked(path), path.read_text(encoding="utf-8")
    assert text.count('<details class="fold">') == 2
    assert page.text["summary"].count("how") == 1
    assert {"words", "more words"} <= set(page.text["p"])
    regions = re.findall(r'role="region" aria-label="([^"]+)"', text)
    assert len(set(regions)) == len(regions) == 2  # names tell apart what is inside too


# ---- what is wrong with the fit ----


def with_run(fit, result, message="", elbo=None):
    """Return a fit of a sampler, by hand, that ended so."""
    random = np.random.default_rng(0)
    samples = {"plausibility": random.dirichlet(np.ones(3), (2, 1000, 4))}
    run = GenericRun(samples, {}, result, 1000, 1.0, message, elbo)
    return dataclasses.replace(fit, method="nuts", posterior=Draws(samples), result=result, run=run)


@pytest.mark.parametrize(
    ("result", "message", "said"),
    [
        (Result.interrupted, "the time limit ended the run at step 7", "The run was interrupted before its end."),
        (Result.nonfinite, "step 7 gave a number that is not finite", "came to a number that is not finite"),
    ],
)
def test_poor_fit_says_so_above_everything_else(fit, tmp_path, result, message, said):
    path = report(with_run(fit, result, message), path=tmp_path / "page.html")
    page, html = checked(path), path.read_text(encoding="utf-8")
    assert page.text["strong"] == ["Read this first: the fit behind this page is poor."]
    head = html[: html.index("</header>")]
    assert said in head
    assert message[1:] in head
    assert head.index("<strong>") < head.index('<dl class="facts">')


def test_ascent_that_has_not_settled_says_so_above_everything_else(fit):
    stopped = with_run(fit, Result.max_steps, elbo=np.arange(1000.0))
    (alert,) = run.alerts(dataclasses.replace(stopped, method="em", posterior=fit.posterior))
    assert alert.texts[0] == "The run ended at its largest number of steps, before it had converged."
    assert "ask for more with max_steps=" in alert.texts[1]


@pytest.mark.parametrize(
    ("text", "title", "texts"),
    [("a is low: it leans", "A is low.", ["It leans."]), ("two cannot be checked", "Two cannot be checked.", [])],
)
def test_a_warning_stands_under_its_first_words(fit, text, title, texts):
    (alert,) = run.alerts(dataclasses.replace(fit, said=(Note(Level.warning, text),)))
    assert (alert.title, list(alert.texts), alert.level) == (title, texts, Level.warning)


def test_fit_of_which_nothing_is_poor_has_no_box(fit, tmp_path):
    assert run.alerts(with_run(fit, Result.max_steps)) == []
    assert "strong" not in checked(report(fit, path=tmp_path / "page.html")).tags


LONGER = "Ask for {} as many draws (4 runs of {} instead of 64), which should give about {} independent draws:"


@pytest.mark.parametrize(
    ("size", "short", "disagreeing", "said"),
    [
        (900.0, 0, 0, None),
        (900.0, 0, 1, ("Run longer:", 128)),
        (150.0, 2, 0, (LONGER.format("3 times", 192, 450), 192)),
        (399.0, 2, 1, (LONGER.format("twice", 128, 800), 128)),
    ],
)
def test_a_run_that_was_too_short_comes_with_the_command_for_a_longer_one(fit, size, short, disagreeing, said):
    sampled = dataclasses.replace(fit, attributes={**fit.attributes, "chains": 4})
    theta = Quantity("theta", ())
    vars(sampled)["worst"] = Worst(9, 9, 800, 1.014, disagreeing, theta, size, short, theta)
    found = SimpleNamespace(
        systems={}, gold=None, annotators=pd.DataFrame(), at_others=[], truth=fit.truth, top=cs.certainty(fit),
        next_labels=None, decisive=None, unit="item", by_gold=SimpleNamespace(anchored=None),
    )
    actions = next_classes.actions(sampled, found)
    longer = [one for one in actions if one.words.startswith(("Ask", "Run"))]
    shown = {one.words: re.search(r"draws=(\d+)", one.command)[1] for one in longer}
    assert shown == ({} if said is None else {said[0]: str(said[1])})


def test_numbers_of_the_run_are_rounded(fit):
    fit = dataclasses.replace(fit, attributes={**fit.attributes, "worst_r_hat": 6.298147875897062})
    table = run.run_section(fit, {}).blocks[0].frame
    assert table.set_index("what")["value"]["largest R-hat (1 where runs agree)"] == "6.298"


def with_priors(fit, priors):
    return dataclasses.replace(fit, resolved=fit.resolved.replace(given=priors))


@pytest.mark.parametrize("priors", [{"plausibility": dirichlet.Symmetric(2.0)}])
def test_the_code_of_priors_can_be_run(fit, priors):
    own = dataclasses.replace(fit, resolved=fit.resolved.replace(given=dirichlet.Priors(**priors)))
    lines = run.reproduction(own, {}).splitlines()
    names = {}
    exec("\n".join(line for line in lines if line.startswith(("from", "priors"))), names)
    assert names["priors"] == own.priors
    by_hand = with_priors(fit, dirichlet.Priors(plausibility=lambda data: None))
    assert "\npriors = …  # plausibility: <lambda>\n" in run.reproduction(by_hand, {})
