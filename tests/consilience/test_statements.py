"""Every kind of page: what earlier ones said wrongly stands on none, and no name in the data makes an element."""

import dataclasses
import itertools
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from html import unescape
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest
from matplotlib.textpath import TextPath

import consilience as cs
from consilience import figures
from consilience.evaluation.agreement import Agreement
from consilience.pages import _is_wide
from consilience.pages.classes import _metrics
from consilience.pages.linkage import _by_threshold, found_of_all
from consilience.pages.offsets import offsets_of
from consilience.pages.ratings import _bars_alike, _changed, without_offsets_code
from consilience.pages.sides import without_offsets
from consilience.pages.vectors import svg_of
from tests.golden.cases import constraints, crowd, mentions, rankings, ratings, records

# Small data are poor data, and fits of them say so.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

PAYLOADS = (
    "<script>hit()</script>", "</script><script>hit()</script>", "<img src=x onerror=hit()>", "<svg onload=hit()>",
    "\"><b onclick=hit()>", "' autofocus onfocus='hit()", "</title><h1>x", "</style><i>x", "--><u>x", "<!--",
    "]]><em>x", "{{ 7*7 }}", "javascript:hit()", "&lt;script&gt;hit()&lt;/script&gt;", "</td></tr></table><hr>",
    "<a href='data:text/html,x'>x</a>", "<iframe srcdoc='<script>hit()</script>'>",
)  # fmt: skip

TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p", "div", "strong", "dl",
    "dt", "dd", "ul", "ol", "li", "a", "code", "pre", "details", "summary", "span", "table", "caption", "thead",
    "tbody", "tr", "th", "td", "i", "sub", "figure", "script",
}  # fmt: skip
"""Elements of the template; those of figures are told apart."""

WRONG = (
    "Nobody observed", "rises with the reliability", "averaged over draws of it", "of the links alone",
    "1 if learning includes", "links that these pairs were worth", "By its own account", "mean plausibility of above",
    "certainty of the top class, exact", "95.5%", "particular draw", "95%", "of the top class are exact", "1.0 views",
    "State provenance", "annotations_m1", "above -this", "ambiguous mentions", "no better than chance", "max_steps",
)  # fmt: skip


def hostile(data):
    """Return data whose names are payloads, numbered so that they stay apart."""
    names = [field.name for field in dataclasses.fields(data) if field.metadata.get("kind") == "ids"]
    renamed = {}
    for name in names:
        own = getattr(data, name)
        if isinstance(own, np.ndarray) and own.ndim == 1 and own.dtype == object:
            texts = [f"{PAYLOADS[place % len(PAYLOADS)]} {place}" for place in range(len(own))]
            renamed[name] = np.array(texts, object)
    return data.replace(**renamed)


def words_of(data):
    """Return the words of documents, all of them payloads."""
    rows = [(name, token, PAYLOADS[token % len(PAYLOADS)]) for name in data.documents for token in range(26)]
    return dict(zip(("document", "token", "word"), zip(*rows, strict=True), strict=True))


def _labels():
    study = crowd()
    gold = np.arange(study.data.num_items) % 3
    fit = cs.fit("dawid-skene", hostile(study.data.replace(gold=gold.astype(np.int32))))
    items, labels = fit.truth.ids["item"], list(fit.truth.ids["label"])
    systems = {}
    for name, shift in ((PAYLOADS[2], 1), (PAYLOADS[0], 0)):  # the best one last
        lists = [[labels[(place + shift) % 3]] for place in range(len(items))]
        systems[name] = cs.Predictions.from_lists(lists, items=items, classes=labels, name=name)
    return fit, {"predictions": systems}


def _rankings():
    fit = cs.fit("prirn", hostile(rankings().data), reliability=5, draws=64)
    classes = fit.truth.ids["class"]
    risk = {"class": list(classes), "group": [place % 3 for place in range(len(classes))]}
    lists = [[classes[place % 6], classes[(place + 1) % 6], classes[(place + 2) % 6]] for place in range(14)]
    systems = {PAYLOADS[1]: cs.Predictions.from_lists(lists, items=fit.truth.ids["item"], classes=list(classes))}
    return fit, {"class_groups": risk, "predictions": systems}


def _coreference():
    data = hostile(mentions().data)
    fit = cs.fit("mpa", data)
    systems = {PAYLOADS[0]: cs.silver_chains(fit).to_chains()}
    return fit, {"text": words_of(data), "predictions": systems}


KINDS = {
    "labels": _labels,
    "rankings": _rankings,
    "ratings": lambda: (cs.fit("normal-inverse-gamma", hostile(ratings().data), threshold=0.0), {}),
    "coreference": _coreference,
    "linkage": lambda: (cs.fit("block-linkage", hostile(records().data)), {}),
    "views": lambda: (cs.fit("expert-views", hostile(constraints().data), clusters=2, method="cavi", restarts=2), {}),
    "agreement": lambda: (cs.agreement(hostile(crowd().data)), {}),
    "vote": lambda: (cs.fit("majority-vote", hostile(crowd().data)), {}),
}


class Elements(HTMLParser):
    """Keeps tags outside of figures, their attributes, and what tables and controls lack."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.inside = [], set(), 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.inside += tag == "svg"
        if not self.inside:
            self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_startendtag(self, tag, attrs):
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        self.inside -= tag == "svg"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Write the page of each kind, with payloads for names, and return the paths, fits and HTML."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for name, build in KINDS.items():
        fit, options = build()
        path = cs.report(fit, path=folder / f"{name}.html", title=f"{PAYLOADS[0]} {name}", **options)
        made[name] = (path, fit, path.read_text(encoding="utf-8"))
    return made


def words(html, tag=r"\w+"):
    """Return the texts of a page, or those of one tag, without styles and script."""
    html = re.sub(r"<(style|script).*?</\1>", " ", html, flags=re.DOTALL)
    if tag != r"\w+":
        found = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", html, flags=re.DOTALL)
        return [" ".join(unescape(re.sub(r"<[^>]+>", " ", one)).split()) for one in found]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def section(html, title):
    """Return the HTML of a section."""
    return next(part for part in html.split('<details class="section"') if f"<h2>{title}</h2>" in part)


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_says_what_was_wrong(pages, kind):
    text = words(pages[kind][2])
    assert not [wrong for wrong in WRONG if wrong in text]
    assert not re.search(r"\d%|\bnan\b", text)  # a share in per cent is written in one way, and so is what is not known


@pytest.mark.parametrize("kind", KINDS)
def test_names_make_no_element_and_everything_has_a_name(pages, kind):
    html = pages[kind][2]
    page = Elements(html)
    assert set(page.tags) <= TAGS
    assert [page.tags.count(tag) for tag in ("script", "style", "title", "h1", "html")] == [1] * 5
    assert not [name for name in page.attributes if name.startswith("on") or name in ("srcdoc", "autofocus")]
    assert page.tags.count("caption") == page.tags.count("table")
    regions = re.findall(r'<(?:div|pre)[^>]*role="region" aria-label="([^"]+)"', html)
    assert len(regions) == len(set(regions)) == page.tags.count("table") + page.tags.count("pre")
    # The first screen: four numbers, four findings, five things to do at most, and every link has a place.
    head = html[: html.index("</header>")]
    assert head.count("<dt>") <= 4
    assert head.count("<li>") <= 9
    places = set(re.findall(r'<details class="section" id="([^"]+)"', html))
    assert set(re.findall(r'<a href="#([^"]+)"', head)) <= places
    items = " open" * (kind == "labels")  # beside systems and gold labels
    assert re.findall(r'<details class="section" id="[^"]*"( open)?>', html)[:3] == [" open", " open", items]


def test_no_class_of_the_style_sheet_is_of_two_kinds_of_element(pages):
    """A rule for folds once took the height from the bars that had their class."""
    htmls = [html for *_, html in pages.values()]
    style = re.search(r"<style>(.*?)</style>", htmls[0], flags=re.DOTALL)[1]
    styled, of = set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"\{.*?\}", "{}", style))), {}
    template = resources.files("consilience").joinpath("templates", "report.html").read_text(encoding="utf-8")
    for html in (*htmls, template.partition("<style>")[0]):
        for tag, names in re.findall(r'<(\w+)[^>]*? class="([^"{]*)', html):
            for name in set(names.split()) & styled:
                of.setdefault(name, set()).add("cell" if tag in ("th", "td") else tag)
    assert {"fold", "more", "less", "line", "rule", "number", "section", "mark"} <= set(of)
    assert {name: tags for name, tags in of.items() if len(tags) > 1} == {}


def texts_outside(html):
    """Return texts of figures that leave them, by letters of matplotlib's own font, wider than those of most pages."""
    out = []
    for figure in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        root = ElementTree.fromstring(figure)
        right, bottom = map(float, root.attrib["viewBox"].split()[2:])
        for text in root.iter("text"):
            look, moved = text.attrib["style"], dict(re.findall(r"(\w+)\(([^)]*)\)", text.attrib["transform"]))
            angle, *at = map(float, moved.get("rotate", "0").split())
            at = list(map(float, moved["translate"].split())) if "translate" in moved else at
            before = 0.5 * ("text-anchor: middle" in look) + 1.0 * ("text-anchor: end" in look)
            size = float(re.search(r"font-size: ([\d.]+)", look)[1])
            wide = TextPath((0, 0), text.text or "", size).get_extents().x1
            ends = complex(*at) + np.exp(1j * np.deg2rad(angle)) * wide * np.array([-before, 1 - before])
            inside = (-1 < ends.real) & (ends.real < right + 1) & (-1 < ends.imag) & (ends.imag < bottom + 1)
            out += [] if inside.all() else [text.text]
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_figure_leaves_it(pages, kind):
    assert not texts_outside(pages[kind][2])


def test_a_title_wider_than_its_figure_goes_on_in_the_next_line():
    score = cs.Score(title="t", items=np.array([0.1, 0.5]), draws=np.array([0.3]))
    axes = figures.item_scores(score, title="a title that is wider than its figure " * 4)
    html = svg_of(axes.figure, "").svg
    assert len(re.findall("<text[^>]*>[^<]*(?:title|wider|figure)", html)) > 1
    assert not texts_outside(html)


def test_two_intervals_of_a_score_say_what_they_hold_and_only_what_is_drawn_has_a_key(pages):
    html = pages["labels"][2]
    heads = words(section(html, "Leaderboard"), "th")
    assert {"95 % interval, all items like these", "95 % interval, these items"} <= set(heads)
    told = "score on these items varies over draws of the truth; the interval of the leaderboard is for all items like"
    assert told in words(section(html, "Leaderboard"))
    assert "Intervals by the fit may be too narrow." in words(section(html, "Leaderboard"))
    assert "against the point estimate" not in words(section(html, "Leaderboard"))
    assert not {"1.00", "0.00", "1.0000"} & set(words(section(html, "Leaderboard"), "td")[-3:])
    ranked, *_, scored = re.findall("<tbody>.*?</tbody>", section(html, "Leaderboard"), re.DOTALL)
    in_order, scores = (
        [re.split(r" [01]\.", row.removeprefix("accuracy "))[0] for row in words(body, "tr")]
        for body in (ranked, scored)
    )
    assert in_order == scores


def test_a_vote_says_that_it_is_not_sure_and_has_ties_for_a_number(pages):
    _, fit, html = pages["vote"]
    assert "A vote does not say how sure it is." in html[: html.index("<dl")]
    assert words(html, "dt")[:2] == ["items with tied votes", "mean share of votes"]
    assert "certainty" not in words(section(html, "Items"), "th")
    assert "is exact" not in words(section(html, "What was run"))
    assert "share won" in words(section(html, "Annotators"), "th")
    assert "accuracy 0" not in words(section(html, "Annotators"))
    assert "gold" not in words(section(html, "Annotators"))
    assert "30 to none" not in words(html)


def test_what_is_assumed_and_what_is_too_narrow_stands_beside_the_number(pages):
    head = pages["rankings"][2].partition("</header>")[0]
    certain, unsure, *_ = words(head, "dt")
    assert re.search(r" at reliability 5 \(0\.\d\d at 1\.7; 0\.\d\d at 15\)$", certain)
    assert re.search(r" \(\d+ at 1\.7; \d+ at 15\)$", unsure)
    told = r"At a third of it \(1\.7\), \d+.* items would have a certainty below 0.9 \(mean certainty 0\.\d\d\) and at "
    told += r"three times it \(15\), \d+.*\."
    assert re.search(told, words(head))
    assert words(head).count("too narrow") <= 2  # a finding, and the figure
    html = pages["labels"][2]
    shown = words(section(html, "How right the model is"))
    assert re.search(r"matches \d+ of \d+ gold labels \(\d+\.\d expected\)", shown)
    assert re.search(r"right for \d+ of them \(\d\.\d+ \[0\.\d+, \d\.\d+\], 95 % interval\)", shown)


def test_the_risk_of_rankings_has_the_certainty_of_the_page(pages):
    html = pages["rankings"][2]
    items, risk = (words(section(html, title), "td") for title in ("Items", "Risk"))
    name = "certainty of the top class"
    assert items[items.index(name) + 1] == risk[risk.index(name) + 1]
    assert "top-1 accuracy" in words(html, "th")


@pytest.mark.parametrize(("classes", "depth"), [(2, 1), (3, 1), (4, 1), (5, 2), (7, 3), (30, 3)])
def test_metrics_begin_with_the_top_class_and_leave_half_of_the_classes(classes, depth):
    class Truth:
        num_classes = classes

        def answers(self, question):
            return True

    class System:
        num_positions = 9

    found = [one.name for one in _metrics(None, Truth(), {"a": System()})]
    assert found[0] == "top-1"
    assert (f"top-{depth}" in found, f"top-{depth + 1}" in found) == (True, False)


def test_schemes_of_agreement_that_are_alike_are_left_out(pages, tmp_path):
    _, found, html = pages["agreement"]
    assert isinstance(found, Agreement)
    assert "Schemes" not in html
    other = cs.agreement(cs.Annotations.from_counts([[3, 0], [1, 1], [0, 4], [2, 3]]))
    html = cs.report(other, path=tmp_path / "other.html").read_text(encoding="utf-8")
    assert "Schemes differ" in words(section(html, "Agreement"))
    assert "expected" not in words(section(html, "Agreement"), "th")


def test_an_interval_of_entities_stands_only_where_it_is_one(pages):
    _, fit, html = pages["linkage"]
    count = cs.num_entities(fit)
    named = words(html, "dt")
    unsure = bool(count.no_interval or count.links_alone or count.doubt)
    assert named[0].startswith("entities in the result")
    assert named[0].endswith(", 95 %)") is not unsure
    # What is found is a share of all links, or it says of which.
    found, of = found_of_all(fit)
    assert re.match(r"of \d+ links expected to be wrong", named[1])
    assert named[2].startswith(f"of {of} expected to be found")
    recall = cs.expected_scores(fit).recall
    assert (found < recall) == (of == "all links")
    what = [row for row in re.findall(r"<tr>(.*?)</tr>", section(html, "Links made and missed")) if "<td" in row]
    assert len(what) == len({words(row) for row in what})
    assert not [row for row in what if words(row).endswith(" 0")]


def test_intervals_of_thresholds_are_those_of_the_draws_one_by_one():
    fit = cs.fit("block-linkage", cs.simulate_records(200, seed=5), draws=50)
    pairs, clusters = fit.truth.pairs(), fit.truth.counted().partitions.clusters(slice(None))
    found = _by_threshold(fit, np.array([0.3, 0.9]))
    for place, threshold in enumerate((0.3, 0.9)):
        above = pairs.probability >= threshold
        linked = clusters[:, pairs.first] == clusters[:, pairs.second]
        hits, links = linked[:, above].sum(axis=1), linked.sum(axis=1)
        for name, share in (("precision", hits / above.sum()), ("recall", hits / links)):
            own = [found[f"{name}_{end}"][place] for end in ("lower", "upper")]
            np.testing.assert_allclose(own, np.quantile(share, [0.025, 0.975]))
            assert own[0] < own[1]


def test_coreference_counts_mentions_and_says_what_an_interval_is_worth(pages):
    html = pages["coreference"][2]
    *sizes, conll = words(html, "dt")
    assert sizes[0].startswith("chains (")
    assert re.fullmatch(r"of 16 mentions uncertain \(best label below 0\.9(; \d+ close calls?)?\)", sizes[1])
    (verdict,) = re.findall(r'<p class="verdict">(.*?)</p>', html)
    close = r"( \(\d (a close call|close calls)\))?"
    sure = rf"The model is at least 90 % certain of \d of \d chains{close}, but no gold label checks that"
    assert re.fullmatch(rf"{sure}\.", words(verdict))  # of one system
    assert "held fixed" not in html.partition("</header>")[0]
    assert re.search(r"^CoNLL of “.* \(0\.\d+ to [01]\.\d+, nominal 95 %\)$", conll)
    assert "right only for systems that know no more than the crowd. See Systems." in words(html)
    heads = words(section(html, "Systems"), "th")
    assert {"nominal 95 %", "against the most likely chains"} <= set(heads)
    assert not [head for head in heads if head.startswith("95 %")]  # of intervals that hold less
    held = (
        "are nominally 95 %. They allow for errors that documents have in common: a correlation of 0.11, chosen by 20 "
        "simulated crowds of LitBank (fiction with known chains). On 20 others, 90 % intervals of the scores of the "
        "most likely chains contained the true score in 19."
    )
    assert words(section(html, "Systems")).count(held) == 1
    assert "P(best)" not in html
    assert "What the model believed before any data (priors)." in words(section(html, "What was run"))
    assert "sensitivities" in words(section(html, "What was run"), "td")
    assert "The same draws choose the top label and count it" in words(section(html, "Mentions"))


@pytest.mark.parametrize(("counts", "unexpected"), [([[5, 5]] * 20, True), ([[3, 1], [2, 4], [3, 3]] * 2, False)])
def test_agreement_that_a_fit_does_not_expect_is_said_first(counts, unexpected, tmp_path):
    """Annotators who are even about every item agree less than a flat prior of plausibilities has it."""
    fit = cs.fit("dirichlet", cs.Annotations.from_counts(counts), draws=100)
    first = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8").partition("<details")[0]
    found = cs.agreement(fit)
    assert (found.two_sided_p < 0.05) == unexpected
    assert ("The fit does not expect this agreement." in words(first)) == unexpected
    assert (found.verdict in words(first)) == unexpected


def test_ratings_have_a_scale_and_no_classes(pages):
    _, fit, html = pages["ratings"]
    mean, *others = words(html, "dt")
    assert re.fullmatch(r"mean of the items \(\S+ to \S+, 95 %, for other annotators like these\)", mean)
    unsure = f"of {fit.data.num_items} items open (side of 0 less than 90 % certain)"
    assert "exact given priors that were set from the same data" in words(section(html, "What was run"))
    assert offsets_of(fit.data).furthest is None  # else tiles say of whom they are
    assert others[:2] == [unsure, "mean certainty of the sides"]
    assert "intraclass correlation ICC(2,1) (" in others[2]
    first = words(html, "li")[0]
    above = fit.means()["mean"] >= 0
    assert re.match(r"With only \d+ annotators, all means may be off together by up to \S+ \(95 %\); cert", first)
    sure = cs.certainty(fit).items >= 0.9
    high, low = (int((sure & one).sum()) for one in (above, ~above))
    assert (
        f"Of {len(above)} items, {high} are each above 0 with at least 90 % certainty, {low} below, if annotators rate "
        f"alike; report the other {(~sure).sum()} as open."
    ) in words(html)
    gist = f"{high} above 0 and {low} below at a certainty of 0.9 or more, {(~sure).sum()} open"
    assert gist in words(section(html, "Items"))
    high, low = (fit.means()["item"][getattr(fit.means()["mean"], end)()] for end in ("idxmax", "idxmin"))
    extremes = words(section(html, "Items"))
    assert f"“{low}” (" in extremes
    assert f", 95 %) has the lowest estimate, and “{high}” (" in extremes
    assert "nothing here checks the means" in words(html)
    assert {"ratings", "plain mean"} <= set(words(section(html, "Items"), "th"))
    items = section(html, "Items")
    assert items.count('<i class="dot') == fit.data.num_items
    assert items.count('<i class="tick"') == fit.data.num_ratings


@pytest.mark.parametrize(
    ("half", "number", "said"),
    [
        ([1.0, 1.0, 1.0, 1.0], [2, 2, 2, 2], "each has 2 ratings: so the bars are of nearly one width"),
        ([1.0, 1.01, 0.5, 0.5], [2, 2, 5, 5], "depends mainly on the number of ratings"),
        ([1.0, 1.5, 0.5, 0.5], [2, 2, 5, 5], "more ratings, and closer ones, make a narrower bar"),
        ([1.0, 0.9, 0.8, 0.7], [2, 3, 4, 5], "more ratings, and closer ones, make a narrower bar"),
        ([1.0, 1.5, 0.5, 0.5], [2, 2, 2, 2], "its own ratings; closer ratings make a narrower bar"),
    ],
)
def test_why_bars_are_as_wide_as_they_are_is_looked_at(half, number, said):
    half = np.array(half)
    assert said in _bars_alike(-half, half, np.repeat(np.arange(4), number))


def test_certainties_are_told_at_the_ends_of_the_dependence(tmp_path):
    """Where it is as given, nothing is."""
    data = crowd().data
    fit = cs.fit("dawid-skene", data)
    rho = fit.truth.dependence
    html = words(cs.report(fit, path=tmp_path / "page.html").read_text("utf-8"))
    means, unsure = [], []
    for z in (-1.96, 1.96):
        given = cs.fit("dawid-skene", data, dependence=rho.at(z)).labels()["certainty"]
        unsure.append((given < 0.9).sum())
        at = f"{'at' if means else 'At'} {rho.at(z):.2f} the mean certainty would be {given.mean():.3f}"
        means.append(f"{at}, with {unsure[-1]} below 0.9")
    assert f"{'; '.join(means)}." in html
    both = (cs.fit("dawid-skene", data, dependence=rho.at(z)).labels()["certainty"] >= 0.9 for z in (-1.96, 1.96))
    own = fit.labels()["certainty"] >= 0.9
    firm = int(np.all([own, *both], axis=0).sum())
    still = f"; {firm or 'none'} still do(es)? if annotators err together as often as they plausibly may"
    sure = f" {own.sum()} of 24 labels (has|have) a certainty of 0.9 or more{still}"
    assert re.search(rf"{sure}\. Nothing here checks these certainties\.", html)
    assert f"The number may be {min(unsure)} to {max(unsure)} (95 %), because it is not known how often annotat" in html
    assert "How far annotators err together The mean certainty of all items is " in html
    fit = cs.fit("dawid-skene", data, dependence=0.3)
    html = words(cs.report(fit, path=tmp_path / "b.html").read_text("utf-8"))
    assert "They assume a dependence" not in html
    assert "because it is not known how often annotators" not in html
    assert "less or more often" not in html


def test_the_mean_of_ratings_is_as_sure_as_annotators_are_many():
    """Where errors are none the offsets are all of the error, as the mean of a sample of them."""
    offset = np.array([-3.0, -1, 0, 1, 6])
    item, who = (place.ravel() for place in np.indices((40, 5)))
    rows = {"item": item, "annotator": who, "rating": item + offset[who]}
    found = offsets_of(cs.read_ratings(rows))
    assert found.names[0] == "4"
    np.testing.assert_allclose(found.mean, np.sort(offset - offset.mean())[::-1] * 5 / 4)
    np.testing.assert_allclose(found.half, 2.7764 * offset.std(ddof=1) / np.sqrt(5), rtol=1e-4)
    np.testing.assert_allclose(found.from_all, np.sort(offset - offset.mean())[::-1])
    assert found.finding(corrected=False)[0].startswith("“4” rates 6.750 higher than the others")
    assert "mean of all" not in found.finding(corrected=False)[0]  # the offset has another name, and its own place


def test_what_the_offsets_of_annotators_change_is_said(tmp_path, monkeypatch):
    """Two of four rate an item, one of them 9 higher: without, items are alike, and the half that it rated moves."""
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    who, item, offset = np.tile(pairs, (10, 1)).ravel(), np.repeat(np.arange(60), 2), np.array([0.0, 0, 0, 9])
    random = np.random.default_rng(0)
    true = np.repeat([1.0, 40.0], 30)
    rows = {"item": item, "annotator": who, "rating": true[item] + offset[who] + random.normal(0, 0.1, 120)}
    fit = cs.fit("normal-inverse-gamma", cs.read_ratings(rows), threshold=4.8)
    found = without_offsets(fit, offsets_of(fit.data))
    unsure = int((found.sides.certainty.round(3) < 0.9).sum())
    text = _changed(fit, offsets_of(fit.data), found)
    assert "15 of 60 items to the other side" in text
    alone = np.sum(found.top.items.round(3) < 0.9)
    mean = f"alone the mean certainty of the side would be {found.top.value:.3f}"
    assert f"{mean}, and {alone} instead of {unsure}" in text
    page = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    html = words(page)
    assert html.count(text) == 1
    assert "mean certainty of the sides" in words(page, "dt")
    assert "cs.compare(fit, {'a': 'SYSTEM_A.csv', 'b': 'SYSTEM_B.csv'})" in html
    assert "In these commands SYSTEM_A.csv and SYSTEM_B.csv are files of yours." in html
    assert "What the model expects (priors), set from the same data." in html
    assert "An inverse gamma distribution about the variance within items" in html
    assert "moment_variance" not in html
    assert "; the data were given in memory, and … stands for them:" in html
    assert "of many ratings of this item by many annotators of the same kind as these 4 annotators" in html
    assert "files with the columns item and class, the class being above or below" in html
    columns = "for other annotators like these", "for these annotators alone", "if annotators rated alike"
    assert set(columns) <= set(words(page, "th"))
    assert {"gap to the others", "offset from the mean of all"} <= set(words(page, "th"))
    assert "The data hold no known truth: nothing here checks the means." in html
    assert fit.resolved.learned_priors == {"mean", "variance"}
    assert "pulled from the mean of its ratings towards the mean of all items" in html
    off = "If only these 4 annotators matter, remove their offsets from the ratings and fit again in Python"
    assert f"{off} ({alone} instead of {unsure} items would be open; these certainties do not apply to other" in html
    lines = without_offsets_code(fit).splitlines()
    names = {"data": fit.data}
    assert "…" not in "".join(lines)  # they run as they are where the data are
    monkeypatch.chdir(tmp_path)
    exec("\n".join(lines), names)
    np.testing.assert_allclose(names["fit"].means()["mean"], found.sides.mean, rtol=1e-4)
    moved = (names["fit"].means()["mean"] >= 4.8) != (fit.means()["mean"] >= 4.8)
    assert moved.sum() == 15


def test_rankings_stand_beside_what_is_inferred(tmp_path):
    data = cs.read_rankings({
        "item": list("aaaabb"), "annotator": list("xxxyxy"), "class": ["flu", "cold", "cough", "cold", "flu", "flu"],
        "rank": [1, 2, 2, 1, 1, 1],
    })  # fmt: skip
    systems = {name: {"item": ["a", "b"], "class": [said, "flu"]} for name, said in (("one", "flu"), ("two", "cold"))}
    fit = cs.fit("plackett-luce", data, draws=50)
    html = cs.report(fit, systems, path=tmp_path / "page.html").read_text(encoding="utf-8")
    text = words(html)
    assert "x flu > cold = cough" in text or "x flu > cough = cold" in text
    assert "Agreement of each annotator" in text
    assert "P(row beats column)" not in html  # of two systems P(best) says it
    scores = r"say so: if they were made from the annotations, “\w+” scores \S+ \[\S+, \S+\]; if the systems looked at "
    scores += r"the items, \S+ to \S+ \[\S+, \S+\] \(write independent in place of annotations[^:]*: "
    assert re.search(rf"{scores}cs.compare\(fit, predictions, provenance='annotations'", text)
    assert "See what depends on the assumed reliability" not in text  # the table has it
    assert "In top-1 accuracy, if predictions were made from the annotations, “" in text
    assert re.search(r"allows for another value\. At a third of it \(0\.33\), \d.{,5} items would have a", text)
    assert "What depends on the reliability; scores assume that predictions were made from the annotations." in text
    assert "Use 1 or less if something misleads all annotators alike" in text
    assert "Lines that begin with cs. are Python" in text
    assert "RUN" not in text
    assert re.search(r"for \w+( of)? 2 items, if annotators are as reliable as assumed\. These 2 items do not", text)
    said = r"leads “(one|two)” by \S+( to \S+)? \[\S+, \S+\], whether both systems looked or neither did\."
    assert re.search(said, text)
    assert "too narrow, because they leave out errors that an annotator makes on many items." in text
    assert "Their first choices differ on 1 of 2 items." in words(section(html, "Leaderboard"))
    assert "which system is better (lead " in text
    assert "Have more items ranked, each by as many annotators as now: " in text
    assert "More annotators for these 2 items are not enough: even if the right class of each were known" in text
    assert "Have an expert give the right class of each item" in text or "of 20 random items" in text
    said = r"starting with “[ab]”, whose leading class, \w+, is the most plausible one with a probability of only \S+"
    assert re.search(said, text)
    assert "mean plausibilities" not in text.partition("What to do next")[0]
    assert "There are no gold labels: only the rankings themselves check the fit. On average" in text
    assert "From 4 rankings of 2 items by 2 annotators, 3 classes: how plausible" in text
    fit.save(tmp_path / "my run")
    text = words(cs.report(cs.load_fit(tmp_path / "my run"), systems, path=tmp_path / "page.html").read_text("utf-8"))
    assert "compare 'my run' one.csv" in text or "compare 'my run' two.csv" in text
    assert "files with the columns item, class and rank" in text
    assert "RUN" not in text


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
  const flat = [...page.querySelectorAll(".scale i")].filter((one) => !one.getBoundingClientRect().height);
  document.body.textContent = [
    root.scrollWidth, root.clientWidth, page.querySelectorAll("script").length, "hit" in frame.contentWindow,
    unnamed.length, flat.length, frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    sort.parentElement.getAttribute("aria-sort")].join(" ");
};
document.body.append(frame);
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_a_page_fits_the_window_and_its_script_runs(pages, tmp_path, kind, width, dark):
    text = pages[kind][2].replace("&", "&amp;").replace("<", "&lt;")
    outer = tmp_path / "outer.html"
    measure = MEASURE.replace("WIDTH", str(width))
    outer.write_text(f'<!DOCTYPE html><body><textarea id="page" hidden>{text}</textarea>{measure}', encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--dump-dom",
             "--disable-background-networking", "--hide-scrollbars", "--virtual-time-budget=9000",
             "--window-size=1400,1000", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
    flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
    command = ["chromium", *flags, outer.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert words(shown.stdout) == f"{width} {width} 1 false 0 0 {str(dark).lower()} ascending"


def test_a_few_rows_that_are_wider_than_a_phone_become_blocks_on_it():
    heads, row = ["system", "right", "share", "95 % from", "to"], ["a", "5", "0.5", "0.2", "0.8"]
    assert not _is_wide(heads, [[one] for one in row])
    wide = [[one] for one in ["a system with a name", *row[1:]]]
    assert _is_wide(heads, wide)
    assert not _is_wide(heads[:4], wide[:4])  # which can be read as they are
    assert not _is_wide(heads, [13 * one for one in wide])
