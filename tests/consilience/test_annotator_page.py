"""Figures of annotators, and the sections of a report that show them."""

import json
import re
from io import BytesIO

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience import agreement_figures, annotator_figures
from consilience.cli import main
from consilience.pages import Page, crowd, write_page
from consilience.pages.crowd import annotator_sections, most_worth, next_gain, next_label_sections, shown_annotators

NEXT, WHO, CONFUSE, GUESS = (
    "Next labels", "Annotators", "Confusions", "Guesses",
)  # fmt: skip
STRANGE = ["<b>&amp;", "a$b_c$d", "_hidden", "x\x01y", "a very long name of an annotator that would fill a page"]


def drawn(axes):
    """Draw, with every warning an error, and return the axes."""
    axes.figure.savefig(BytesIO(), format="png", dpi=40)
    return axes


def words(axes):
    return [text.get_text() for text in axes.texts]


def annotators(number, seed=0):
    random = np.random.default_rng(seed)
    value, half = random.uniform(0.2, 0.8, number), random.uniform(0.01, 0.2, number)
    return pandas.DataFrame({
        "annotator": [f"r{place}" for place in range(number)], "annotations": random.integers(1, 1000, number),
        "accuracy": value, "lower": value - half, "upper": value + half,
    })  # fmt: skip


# ---- figures ----


def test_reliability_marks_who_is_below_chance():
    frame = annotators(5).assign(accuracy=[0.9, 0.4, 0.6, 0.3, 0.5], annotator=STRANGE)
    axes = drawn(annotator_figures.reliability(frame, "Accuracy", chance=0.5))
    dots = {line.get_marker(): sorted(line.get_xdata()) for line in axes.get_lines() if line.get_marker() in ("o", "v")}
    assert dots == {"o": [0.5, 0.6, 0.9], "v": [0.3, 0.4]}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["accuracy", "below chance", "chance"]
    assert words(axes) == [*(f"{number}" for number in frame["annotations"]), "annotations"]


def test_reliability_of_an_estimate_has_no_intervals():
    frame = annotators(3).assign(lower=np.nan, upper=np.nan)
    axes = drawn(annotator_figures.reliability(frame, "Accuracy"))
    assert not sum(line.size for lines in axes.collections for line in lines.get_segments())
    assert axes.get_lines()[0].get_xdata().tolist() == frame["accuracy"].tolist()


def test_two_measures_stand_beside_each_other():
    frame = annotators(3).assign(competence=[0.1, 0.2, 0.3], competence_lower=0.0, competence_upper=0.5)
    axes = drawn(annotator_figures.reliability(frame, "Both", {"right": "accuracy", "knows": "competence"}))
    squares = [line for line in axes.get_lines() if line.get_marker() == "s"]
    assert squares[0].get_xdata().tolist() == [0.1, 0.2, 0.3]
    assert axes.get_xlabel() == "probability"


def test_matrix_shows_every_number_and_fades_where_little_is_known():
    """Two cells of equal probability: the one with the wider interval has less ink."""
    frame = pandas.DataFrame({
        "true_label": ["a", "a", "b", "b"], "label": ["a", "b", "a", "b"], "probability": [0.8, 0.2, 0.2, 0.8],
        "lower": [0.75, 0.1, 0.0, 0.3], "upper": [0.85, 0.3, 0.7, 1.0], "annotations": [1234, 1234, 5, 5],
    })  # fmt: skip
    axes = drawn(annotator_figures.probability_matrix(frame, "Confusion", amount="annotations"))
    assert words(axes)[:2] == ["0.80", "0.75–0.85"]
    assert len(words(axes)) == 8
    ink = axes.collections[0].get_facecolor()[:, 3]
    assert ink[0] > ink[3] > ink[2]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a (1,234)", "b (5)"]
    assert len(axes.get_lines()) == 2  # frames of the right answers
    point = annotator_figures.probability_matrix(frame.assign(lower=np.nan, upper=np.nan), "Estimate")
    assert words(drawn(point)) == ["0.80", "0.20", "0.20", "0.80"]


def profiles(number, seed=0):
    random = np.random.default_rng(seed)
    frame = pandas.DataFrame({
        "annotator": np.repeat([f"r{place}" for place in range(number)], 2), "class": ["DN", "DO"] * number,
        "decisions": random.integers(1, 50, 2 * number),
    })  # fmt: skip
    for name in ("sensitivity", "specificity"):
        value = random.uniform(0.1, 0.9, 2 * number)
        frame = frame.assign(**{name: value, f"{name}_lower": value - 0.1, f"{name}_upper": value + 0.1})
    return frame


def test_scatter_has_one_dot_for_each_annotator_who_decided_on_both_classes():
    frame = profiles(6).iloc[1:]  # r0 never decided on DN
    axes = drawn(annotator_figures.sensitivity_scatter(frame, "DO", "DN", below={"r3"}))
    dots = [part for part in axes.collections if hasattr(part, "get_sizes")]
    assert sorted(len(part.get_offsets()) for part in dots) == [1, 4]
    by_name = frame[frame["class"] == "DO"].set_index("annotator")["sensitivity"]
    marked = next(part for part in dots if len(part.get_offsets()) == 1)
    assert marked.get_offsets()[0][0] == by_name["r3"]


def test_scatter_of_nobody_and_of_many():
    drawn(annotator_figures.sensitivity_scatter(profiles(2).iloc[:1], "DO", "DN"))
    axes = annotator_figures.sensitivity_scatter(profiles(20_000), "DO", "DN")
    assert axes.collections[0].get_segments()[19:] != []
    assert len(axes.collections[0].get_segments()) == 20  # the intervals of the busiest alone


# ---- who is shown ----


def test_the_best_worst_and_busiest_are_shown():
    frame = annotators(100_000)
    lucky = pandas.DataFrame(
        {"annotator": ["lucky"], "annotations": [1], "accuracy": [1.0], "lower": [0.1], "upper": [1]}
    )
    idle = lucky.assign(annotator="idle", annotations=0, lower=0.99)
    frame = pandas.concat([frame, lucky, idle], ignore_index=True)
    shown = shown_annotators(frame, "accuracy", ("lower", "upper"), "annotations")
    assert len(shown) == 40
    assert shown["accuracy"].is_monotonic_decreasing
    kept = set(shown["annotator"])
    assert frame.loc[frame["lower"][:-1].idxmax(), "annotator"] in kept
    assert frame.loc[frame["upper"].idxmin(), "annotator"] in kept
    assert frame.loc[frame["annotations"].idxmax(), "annotator"] in kept
    assert not kept & {"lucky", "idle"}


def test_few_annotators_are_all_shown_and_estimates_are_sorted_by_value():
    assert len(shown_annotators(annotators(40), "accuracy", ("lower", "upper"), "annotations")) == 40
    frame = annotators(500).assign(lower=np.nan, upper=np.nan)
    shown = shown_annotators(frame, "accuracy", ("lower", "upper"), "annotations")
    assert shown["accuracy"].iloc[0] == frame["accuracy"].max()
    assert shown["accuracy"].iloc[-1] == frame["accuracy"].min()


# ---- sections ----


def page(fit, tmp_path):
    frame = fit.table("annotators") if "annotators" in fit.member.table_names else {}
    parts = [*next_label_sections(fit, most_worth(fit)), *annotator_sections(fit, frame)]
    html = write_page(Page("Annotators", "", parts), tmp_path / "page.html").read_text()
    assert not re.search(r">\s*nan\s*<", html)
    return [part.title for part in parts], html


@pytest.fixture(scope="module")
def annotations():
    return cs.load("dawid-skene-1979")


@pytest.mark.parametrize(
    ("model", "options", "titles"),
    [
        ("dawid-skene", {}, [NEXT, WHO, CONFUSE]),
        ("dawid-skene", {"method": "em"}, [NEXT, WHO, CONFUSE]),
        ("mace", {}, [NEXT, WHO, CONFUSE, GUESS]),
        ("majority-vote", {}, [WHO]),
        ("dirichlet", {}, []),
    ],
)
def test_sections_follow_from_the_tables_of_the_model(annotations, model, options, titles, tmp_path):
    found, html = page(cs.fit(model, annotations, **options), tmp_path)
    assert found == titles
    assert ("no intervals" in html) == (options == {"method": "em"})


@pytest.mark.parametrize(("repeat", "single"), [(1, 0), (10, 4)])
def test_matrices_of_single_annotators_need_ten_annotations_a_label(repeat, single, tmp_path):
    item, who = np.repeat(np.arange(6 * repeat), 4), np.tile(np.arange(4), 6 * repeat)
    data = cs.read_annotations({"item": item, "annotator": who, "label": (item + (who == item % 4)) % 3})
    _, html = page(cs.fit("dawid-skene", data), tmp_path)
    assert html.count('aria-label="Annotator ') == single
    assert ("No annotator has 10 annotations for each label" in html) == (not single)


@pytest.mark.parametrize(
    ("shares", "half", "number", "said"),
    [
        ((0.3, 0.1), 0.05, 30, "most often “b” for “a” (0.300 [0.250, 0.350])"),
        ((0.3, 0.1), 0.15, 30, "no confusion is clearly more frequent than the others"),
        ((0.3, 0.1), np.nan, 30, "most often “b” for “a” (0.300)"),
        ((0.3, 0.1), 0.05, 3, ""),
    ],
)
def test_the_confusion_that_is_named_is_no_accident_of_the_prior(shares, half, number, said):
    value = np.array([1 - sum(shares), *shares])
    crowd_table = pandas.DataFrame({
        "true_label": "a", "label": list("abc"), "probability": value, "lower": value - half, "upper": value + half,
        "annotations": number,
    })  # fmt: skip
    assert crowd._most_confused(crowd_table) == said


@pytest.mark.parametrize("name", ["kim", "reader.{}@hospital-north.example", "x" * 80 + "{}"])
def test_texts_of_figures_stay_inside_and_apart(name):
    """Long names, on a canvas of the fonts in which the widths were measured."""
    frame = annotators(6).assign(annotator=[name.format(code) for code in range(6)], annotations=123_456, share=0.2)
    frame = frame.rename(columns={"accuracy": "agreement"}).assign(accuracy=frame["accuracy"])
    for axes in (
        annotator_figures.reliability(frame, "Accuracy of each annotator, as it is", chance=0.5),
        agreement_figures.agreement_by_name(frame, "annotator", "agreement", "Agreement on each label", chance="share"),
    ):
        figure = axes.figure
        figure.draw_without_rendering()
        parts = [axes._left_title, *axes.texts, *axes.get_legend().get_texts(), *axes.get_yticklabels()]
        boxes = [part.get_window_extent() for part in parts]
        for place, box in enumerate(boxes):
            assert figure.bbox.x0 - 1 <= box.x0
            assert box.x1 <= figure.bbox.x1 + 1
            assert not any(box.overlaps(other) for other in boxes[:place])


def test_agreement_of_pairs_has_no_colour_where_they_share_few_items_and_a_dash_where_none():
    """Colour is agreement alone: of 10 items and of 20 it is the same."""
    pairs = pandas.DataFrame({
        "annotator_a": ["a", "a", "b", "c"], "annotator_b": ["b", "c", "d", "d"], "items": [9, 20, 30, 10],
        "agreement": [1, 0.9, 0.5, 0.9], "lower": 0.0, "upper": 1.0,
    })  # fmt: skip
    axes = drawn(agreement_figures.annotator_matrix(pairs))
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names[0] in "bd"  # the least agreeing first
    a, b, c, d = (names.index(name) for name in "abcd")
    ink = axes.collections[0].get_facecolor()[:, 3].reshape(4, 4)
    assert ink[a, c] == ink[c, d] > ink[b, d] > ink[a, b] == 0
    muted = {text.get_text() for text in axes.texts if text.get_alpha() < 1}
    assert muted == {"100", "–"}
    assert words(axes).count("–") == 4
    assert words(axes).count("90") == 4


def test_many_classes_are_a_table_of_confusions_and_names_stay_as_they_are(tmp_path):
    random = np.random.default_rng(0)
    item = np.repeat(np.arange(60), 5)
    label = np.where(random.random(300) < 0.3, random.integers(0, 10, 300), item % 10)
    data = cs.read_annotations({"item": item, "annotator": STRANGE * 60, "label": label})
    found, html = page(cs.fit("dawid-skene", data, method="em"), tmp_path)
    assert found == [NEXT, WHO, CONFUSE]
    assert "most frequent confusions" in html
    assert "<b>&amp;" not in html
    assert "a$b_c$d" in html


def test_mentions_have_a_figure_for_each_class_and_no_other_of_the_same_numbers(tmp_path):
    rows = [(f"m{m}", f"a{a}", "DN" if (m + a * m) % 3 else f"DO(m{m - 1})") for m in range(1, 9) for a in range(4)]
    rows += [("m0", "a0", "DN")]
    names = ("mention_id", "annotator_id", "annotation")
    mentions = cs.read_mentions(dict(zip(names, zip(*rows, strict=True), strict=True)))
    found, html = page(cs.fit("mpa", mentions, coreference="links"), tmp_path)
    assert found == [NEXT, WHO]
    assert all(title in html for title in ("Class discourse-new", "Class discourse-old"))
    assert "Sensitivity to two classes" not in html


# ---- the command ----


def test_next_command_lists_items(annotations, tmp_path, capsys):
    fit = cs.fit("dawid-skene", annotations, method="em")
    fit.save(tmp_path / "run")
    capsys.readouterr()
    assert main(["next", str(tmp_path / "run"), "--limit", "2", "--json", "--csv", str(tmp_path / "next.csv")]) == 0
    rows = json.loads(capsys.readouterr().out)
    expected = cs.next_labels(fit, limit=2)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    np.testing.assert_allclose([row["gain"] for row in rows], expected["gain"])
    assert len(pandas.read_csv(tmp_path / "next.csv")) == 2
    assert main(["next", str(tmp_path / "run"), "--limit", "0"]) == 1
    assert "1 or more" in capsys.readouterr().err


def test_what_one_more_label_would_gain_is_said_of_as_many_items_as_the_page_lists():
    counts = [[2, 1], [1, 2], [1, 1]] * 20
    item, label = (np.repeat(one, np.ravel(counts)) for one in (np.repeat(np.arange(60), 2), np.tile([0, 1], 60)))
    who = np.concatenate([np.arange(sum(one)) for one in counts])
    fit = cs.fit("dawid-skene", cs.Annotations.from_codes(item, who, label))
    found = most_worth(fit)
    gain = found["gain"].head(25)
    said = f"Get one more label for each of the {(gain > 0).sum()} items where it helps most: this is expected to "
    assert next_gain(fit, found) == f"{said}correct {gain.sum():.1f} labels"
    assert gain.sum() > 0.05
    assert next_gain(fit, found.assign(gain=0.0)) == next_gain(fit, None) == "Get one more label where it helps most"
