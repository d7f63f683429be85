"""What a report says of the annotators: who is reliable at what, what they confuse, and what to ask them next."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from consilience import annotator_figures
from consilience.drawing import shown_name
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.evaluation.another_label import next_labels
from consilience.inference.fitting import Fit
from consilience.models.truth import Truth
from consilience.pages import Section

# A figure shows so many annotators, a page so many confusion matrices of single ones.
_MOST_ANNOTATORS, _MOST_MATRICES, _MOST_GUESSERS = 40, 6, 12

# More classes make no readable matrix: the most frequent confusions are tabulated.
_MOST_CLASSES, _MOST_CONFUSIONS = 8, 25

_MOST_ITEMS = 25


def annotator_sections(fit: Fit) -> list[Section]:
    """Return the sections on the annotators that the tables of the model allow; none where it has no such tables."""
    if "annotators" not in fit.member.table_names:
        return []
    frame = fit.table("annotators")
    if "accuracy" in frame:
        parts = [_accuracy(fit, frame)]
    elif "sensitivity" in frame:
        parts = [_profiles(frame)]
    else:
        return []
    if {"crowd", "confusion"} <= set(fit.member.table_names):
        with contextlib.suppress(TooLarge):  # no page is the place for matrices of so many labels
            parts.append(_confusion(fit, frame))
    if "guesses" in fit.member.table_names:
        parts.append(_guesses(fit, frame))
    return parts


def next_label_sections(truth: Truth) -> list[Section]:
    """Return the section on the items most worth another label; none where the model does not know the annotators."""
    try:
        found = next_labels(truth)
    except UnsupportedRequest:
        return []
    gaining = found[found["gain"] > 0]
    words = (
        "“Gain” is how much more certain the item is expected to be after one more annotation, by an annotator taken "
        "from this crowd in proportion to how much each annotates. It is zero where no single label could change "
        "which label leads: there one more annotation can still teach something about the annotators, but the item "
        f"is as good as decided. That holds for {len(found) - len(gaining):,} of {len(found):,} items."
    )
    if not len(gaining):
        return [Section("Items most worth another label", [words])]
    shown = gaining.head(_MOST_ITEMS).rename(columns=lambda name: name.replace("_", " "))
    mean = found["expected_certainty"].mean() - found["certainty"].mean()
    then = (
        f"One more label for each of these is expected to make {shown['gain'].sum():.2f} more of {len(shown):,} "
        f"leading labels right; one for every item would raise the mean certainty by {mean:.4f}."
    )
    return [Section("Items most worth another label", [words, shown, then])]


# Who is reliable at what ----------------------------------------------------------------------------------------------


def shown_annotators(frame: Any, value: str, ends: tuple[str, str], amount: str, most: int = _MOST_ANNOTATORS) -> Any:
    """Choose the annotators that a figure can show: the best, the worst and the busiest, sorted, the best first.

    Best and worst are those who surely are, by the end of their interval, and not those with a single lucky annotation.

    Parameters
    ----------
    frame : data frame, one row an annotator; those without any annotation are left out.
    value, ends, amount : columns to choose by.
    most : how many to choose.
    """
    frame = frame[frame[amount] > 0]
    if len(frame) > most:
        middle = frame[value].to_numpy(float)
        low, high = (np.where(np.isnan(frame[end]), middle, frame[end]) for end in ends)
        orders = [np.argsort(-low, kind="stable")[: most // 3], np.argsort(high, kind="stable")[: most // 3]]
        chosen = np.unique(np.concatenate(orders))
        busiest = np.argsort(-frame[amount].to_numpy(float), kind="stable")
        others = busiest[~np.isin(busiest, chosen)][: most - len(chosen)]
        frame = frame.iloc[np.sort(np.concatenate([chosen, others]))]
    return frame.sort_values(value, ascending=False, kind="stable")


def _accuracy(fit: Fit, frame: Any) -> Section:
    frame = frame.rename(columns={"lower": "accuracy_lower", "upper": "accuracy_upper"})
    if "competence" in frame:
        series = {"accuracy": "accuracy", "competence (knows the label)": "competence"}
    else:
        series = {"accuracy": "accuracy"}
    truth: Any = fit.truth
    chance = 1 / truth.num_classes
    shown = shown_annotators(frame, "accuracy", ("accuracy_lower", "accuracy_upper"), "annotations")
    drawn = annotator_figures.reliability(shown, "Accuracy of each annotator", series, chance=chance)
    blocks = [_accuracy_words(fit, frame, chance), *_left_out(frame, shown, "annotations"), drawn]
    return Section("Who is reliable at what", blocks)


def _accuracy_words(fit: Fit, frame: Any, chance: float) -> str:
    if fit.member.density is None:  # a vote, of annotators of whom nothing is modelled
        words = (
            "Accuracy is how often the annotator gave the label that won the vote, or the gold label where the fit "
            "used it. The annotator's own vote is part of the vote, so this is too high where few annotate an item."
        )
    else:
        words = (
            "Accuracy is the probability that the annotator gives the true label of an item, labels being as frequent "
            "as they are believed to be."
        )
    if frame["accuracy_lower"].isna().all():
        words += " An estimate by EM has no intervals: read little into annotators with few annotations."
    else:
        above, below = (frame["accuracy_lower"] > chance).sum(), (frame["accuracy_upper"] < chance).sum()
        words += (
            f" Intervals hold 95 %. Of {len(frame):,} annotators {above:,} are clearly better than guessing at random "
            f"({chance:.2f}), and {below:,} clearly worse"
            + ("; the model turns round what they say." if below and "confusion" in fit.member.table_names else ".")
        )
    if "competence" in frame:
        words += (
            " Competence is how often the annotator knows the label; accuracy adds what guesses happen to get right."
        )
    return words


def _left_out(frame: Any, shown: Any, amount: str) -> list[str]:
    hidden = int((frame[amount] > 0).sum()) - len(shown)
    if not hidden:
        return []
    return [
        f"Shown are {len(shown)} of {len(frame):,} annotators: the best (by the lower end of the interval), the worst "
        "(by the upper end) and the busiest. The table “annotators” of the fit has all of them."
    ]


def _profiles(frame: Any) -> Section:
    below, both = frame["sensitivity"] + frame["specificity"] < 1, frame["specificity"].notna().any()
    words = "Sensitivity is how often the annotator chooses a candidate of the class when it is true. "
    if both:
        words += (
            "Specificity is how often it is left alone when it is false. Where both add up to less than one the "
            f"annotator is below chance, and a choice counts against the candidate: {int(below.sum()):,} of "
            f"{len(frame):,} profiles. "
        )
    words += "Intervals hold 95 %."
    by_class = frame.groupby("class", sort=False)["decisions"].sum().sort_values(ascending=False)
    scatter: list[Any] = []
    drawn: list[Any] = []
    hidden: list[str] = []
    if len(by_class) > 1:
        x, y = by_class.index[:2]
        marked = set(frame["annotator"][below & frame["class"].isin([x, y])])
        scatter.append(annotator_figures.sensitivity_scatter(frame, x, y, below=marked))
    for name in by_class.index[:_MOST_CLASSES]:
        of_class = frame[frame["class"] == name]
        shown = shown_annotators(of_class, "sensitivity", ("sensitivity_lower", "sensitivity_upper"), "decisions")
        hidden = hidden or _left_out(of_class, shown, "decisions")
        series = {name: name for name in ("sensitivity", "specificity")[: 2 if both else 1]}
        worse = (shown["sensitivity"] + shown["specificity"] < 1).to_numpy()
        title = f"Class {shown_name(name)}"
        drawn.append(annotator_figures.reliability(shown, title, series, below=worse, amount="decisions"))
    return Section("Who is reliable at what", [words, *scatter, *hidden, drawn])


# What they confuse ----------------------------------------------------------------------------------------------------


def _confusion(fit: Fit, frame: Any) -> Section:
    crowd = fit.table("crowd")
    words = (
        "How an annotator of this crowd, taken by how much each annotates, labels items of each true label: the "
        "probability, its 95 % interval below it. Ink is probability and fades as the interval widens. Beside each "
        "true label stands how many annotations of such items there are, as far as one knows; where each annotator "
        "has few of them, the prior speaks."
    )
    truth: Any = fit.truth
    if truth.num_classes > _MOST_CLASSES:
        wrong = crowd[crowd["class"] != crowd["label"]]
        often = (wrong["annotations"] * wrong["probability"]).rename("expected_annotations")
        order = often.sort_values(ascending=False, kind="stable").index[:_MOST_CONFUSIONS]
        table = wrong.assign(expected_annotations=often.round().astype(int)).loc[order]
        named = {"class": "true label", "label": "label given", "lower": "95 % from", "upper": "to"}
        table = table.drop(columns="annotations").rename(columns=named | {"expected_annotations": "annotations, about"})
        what = (
            "The most frequent confusions of the crowd: how probably an annotator, taken by how much each annotates, "
            "gives the label to an item of that true label, and of how many annotations this is the case."
        )
        return Section("What annotators confuse", [what, table])
    drawn = [annotator_figures.probability_matrix(crowd, "The crowd as a whole", amount="annotations")]
    chosen = _busiest(frame, _MOST_MATRICES)
    matrices = fit.table("confusion", annotators=chosen)
    titles = {name: f"Annotator {shown_name(name)}" for name in frame["annotator"].iloc[chosen]}
    single = [
        annotator_figures.probability_matrix(matrices[matrices["annotator"] == name], title, amount="annotations")
        for name, title in titles.items()
    ]
    return Section("What annotators confuse", [words, drawn, "The annotators with most annotations:", single])


def _guesses(fit: Fit, frame: Any) -> Section:
    chosen = _busiest(frame, _MOST_GUESSERS)
    guesses = fit.table("guesses", annotators=chosen)
    words = (
        "What the annotators with most annotations say when they do not know the label, with 95 % intervals. Who never "
        "has to guess shows the prior here."
    )
    labels = guesses.groupby("label", sort=False)["probability"].mean()
    if len(labels) > _MOST_CLASSES:
        kept = labels.sort_values(ascending=False, kind="stable").index[:_MOST_CLASSES]
        guesses = guesses[guesses["label"].isin(kept)]
        words += f" The {_MOST_CLASSES} labels that are guessed most, of {len(labels)}, are shown."
    drawn = annotator_figures.probability_matrix(guesses, "Guesses", row="annotator")
    return Section("What annotators guess", [words, drawn])


def _busiest(frame: Any, number: int) -> np.ndarray:
    """Return the codes of the annotators with most annotations, who have a row each in the order of their codes."""
    amount = frame["annotations"].to_numpy(float)
    order = np.argsort(-amount, kind="stable")[:number]
    return order[amount[order] > 0]
