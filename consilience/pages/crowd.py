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
from consilience.models.crowd.gate import ERRORS, signal
from consilience.pages import SURE, Code, More, Section, Table
from consilience.pages.annotators_by_gold import by_gold_blocks
from consilience.pages.gold_chains import beside_gold_by_class
from consilience.pages.next_steps import fit_again
from consilience.pages.run import TOO_LITTLE_SPREAD, is_approximate, is_counted
from consilience.printing import counted
from consilience.rounding import within, written

# A figure shows so many annotators, a page so many confusion matrices of single ones.
_MOST_ANNOTATORS, _MOST_MATRICES, _MOST_GUESSERS = 40, 6, 12

# More classes make no readable matrix: the most frequent confusions are tabulated.
_MOST_CLASSES, _MOST_CONFUSIONS = 8, 25
_FEWEST_ANNOTATIONS = 10  # of a true label, of which fewer leave the prior to speak

OF_MENTIONS = {"DN": "discourse-new", "DO": "discourse-old", "PR": "property", "NR": "non-referring"}

_MOST_ITEMS = 25
_LEAST_GAIN = 0.05  # of labels, that is written with a digit


def annotator_sections(fit: Fit, frame: Any) -> list[Section]:
    """Return the sections on the annotators that their table and others allow; none where it has no such columns."""
    if "accuracy" in frame:
        parts = [_accuracy(fit, frame)]
    elif "sensitivity" in frame:
        mentions = fit.data.unit == "mention"
        frame = beside_gold_by_class(fit, frame) if mentions else frame
        parts = [_profiles(frame.replace({"class": OF_MENTIONS}) if mentions else frame, mentions=mentions)]
    else:
        return []
    if {"crowd", "confusion"} <= set(fit.member.table_names):
        with contextlib.suppress(TooLarge):  # no page is the place for matrices of so many labels
            parts.append(_confusion(fit, frame))
    if "guesses" in fit.member.table_names:
        parts.append(_guesses(fit, frame))
    return parts


def accuracies(fit: Fit, frame: Any) -> dict[str, str]:
    """Return the range of the annotators' accuracies, by what it is; nothing where the model has none."""
    value, frame = _measure(fit), _named(fit, frame)
    if value not in frame or not (frame["annotations"] > 0).any():
        return {}
    known = frame[value][frame["annotations"] > 0]
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"  # as the table rounds them
    return {f"{_MEASURES[value]}, lowest to highest": f"{low} to {'> 0.99' if high == '1.00' else high}"}


SHARE_WON = "share_won"
"""What a vote has for accuracies, which they are not."""

_MEASURES = {
    "accuracy": "accuracy of annotators",
    SHARE_WON: "share of an annotator's labels that won the vote, the own one counted",
}
_OF_EACH = {
    "accuracy": ("Accuracy of each annotator", "accuracy"),
    SHARE_WON: ("Labels that won the vote", "share of own labels that won the vote"),
}
"""The title of the figure of a measure, and its name in the line of the section."""


def _measure(fit: Fit) -> str:
    """Return the column that tells how right annotators are."""
    return SHARE_WON if is_counted(fit) else "accuracy"


def _named(fit: Fit, frame: Any) -> Any:
    """Return the table of annotators with the accuracies of a vote by what they are."""
    is_won = "accuracy" in frame and is_counted(fit)
    return frame.rename(columns={"accuracy": SHARE_WON}) if is_won else frame


def _leans(fit: Fit) -> bool:
    """Return whether confusion matrices are more what the prior expects than what annotators did."""
    return any(note.about == ERRORS and note.model for note in fit.findings())


def doubtful_annotators(fit: Fit, frame: Any) -> dict[str, int]:
    """Return how many annotators may be no better than chance, by what that means; nothing where there are none.

    The interval of an accuracy does not tell: of few annotations or many labels it is the prior's.
    """
    number, what = 0, "annotators without evidence that they look"
    if "accuracy" in frame:
        number, _ = _without_evidence(fit)
    elif "sensitivity" in frame:
        guesses = frame["sensitivity"] + frame["specificity"] <= 1
        number = int(frame["annotator"][guesses & (frame["decisions"] > 0)].nunique())
        what = "annotators at or below chance, by their means"
    return {what: number} if number else {}


def _without_evidence(fit: Fit) -> tuple[int, int]:
    """Return how many annotators may agree with others by chance, and of how many that can be told, by no model."""
    if "pairs" not in fit.data.agreements:
        return 0, 0
    found = signal(fit.data)
    return int(found.blind.sum()), int(np.isfinite(found.annotator_z).sum())


def next_gain(fit: Fit, found: Any) -> str:
    """Say where to ask for one more label, and what that would gain where it is known to.

    ``found`` is what `most_worth` returns.
    """
    gain = 0.0 if found is None else float(found["gain"].head(_MOST_ITEMS).sum())
    number = 0 if found is None else int((found["gain"].head(_MOST_ITEMS) > 0).sum())
    if gain < _LEAST_GAIN:
        return "Get one more label where it helps most"
    which = "where it helps most" if number == _MOST_ITEMS else "where it can change the answer"
    of = f"{counted(number, f'{fit.data.unit}s')} {which}"
    return f"Get one more label for {'each of ' * (number > 1)}the {of}: this is expected to correct {gain:.1f} labels"


def most_worth(fit: Fit) -> Any:
    """Return the table of `next_labels`; None where the model does not know the annotators, or no item is left."""
    try:
        found = next_labels(fit)
    except UnsupportedRequest:
        return None
    return found if len(found) else None


def next_label_sections(fit: Fit, found: Any) -> list[Section]:
    """Return the section on the items most worth another label; none where the model does not know the annotators.

    ``found`` is what `most_worth` returns.
    """
    if found is None:
        return []
    truth: Any = fit.truth
    unit, known = fit.data.unit, len(found) < truth.num_units  # the others have a gold label
    gaining = found[found["gain"] > 0]
    firm = found["certainty"][found["gain"] <= 0]
    words = (
        f"“Gain” is how much more certain the {unit} is expected to be after one more annotation by an annotator of "
        "this crowd; busier annotators are more likely to give it. The gain is zero if no single label can change "
        f"which label leads, as for {len(firm):,} of {len(found):,} {unit}s{' without a gold label' if known else ''}."
    )
    if open_ := int((firm < SURE).sum()):
        words += f" Of these, {open_:,} have a certainty below {SURE} and need more than one label."
    if np.less(truth.worth, 1).any():
        rho = f"dependence {truth.dependence.rho:.2f}"
        words += f" The new label is assumed to share the errors of the others ({rho})."
    if not len(gaining):
        return [Section("Next labels", [words], "no single label can change which label leads")]
    shown = gaining.head(_MOST_ITEMS).rename(columns=lambda name: unit if name == "item" else name.replace("_", " "))
    mean = found["expected_certainty"].mean() - found["certainty"].mean()
    which = f"each of the {len(found):,} {unit}s without a gold label" if known else f"every {unit}"
    then = (
        f"One more label for each of these {len(shown):,} {unit}s is expected to correct {shown['gain'].sum():.1f} of "
        f"their labels; one for {which} would raise their mean certainty by {mean:.3f}."
    )
    table = Table(shown, f"The {len(shown)} {unit}s for which another label helps most.")
    gist = f"one more label can change the leading label of {len(gaining):,} of {counted(len(found), f'{unit}s')}"
    return [Section("Next labels", [words, table, then], gist)]


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
    value, frame = _measure(fit), _named(fit, frame)
    title, short = _OF_EACH[value]
    stated, frame = frame, frame.rename(columns={"lower": f"{value}_lower", "upper": f"{value}_upper"})
    series = {value.replace("_", " "): value}
    series |= {"competence (knows the label)": "competence"} if "competence" in frame else {}
    truth: Any = fit.truth
    # Who labels at random is more often on the side of a vote in which the own label counts.
    chance = None if value == SHARE_WON else 1 / truth.num_classes
    shown = shown_annotators(frame, value, (f"{value}_lower", f"{value}_upper"), "annotations")
    drawn = annotator_figures.reliability(shown, title, series, chance=chance)
    blocks = [_accuracy_words(fit, frame), *_left_out(frame, shown, "annotations"), drawn]
    names = {f"{value}_lower": "95 % from", f"{value}_upper": "to", "share_lower": "share, 95 % from"}
    names |= {"share_upper": "to", "competence_lower": "competence, 95 % from", "competence_upper": "to"}
    table = frame.drop(columns=["gold_items", "gold_right"], errors="ignore")
    table = table.sort_values(value, kind="stable").dropna(axis="columns", how="all")
    table = table.rename(columns=lambda name: names.get(name, name.replace("_", " ")))
    z = [written(value, ".1f") if np.isfinite(value) else "–" for value in table.get("agreement z", ())]
    caption = f"Annotators, the lowest {value.replace('_', ' ')} first."
    blocks.append(Table(table, caption, of="annotators", texts={"agreement z": z}))
    blocks += [*_sampled(fit), *by_gold_blocks(fit, stated, value)]
    gist = [f"{short} {text}" for text in accuracies(fit, frame).values()]
    gist += [f"{number} of {len(frame):,} {what}" for what, number in doubtful_annotators(fit, frame).items()]
    return Section("Annotators", blocks, "; ".join(gist))


def _sampled(fit: Fit) -> list[Any]:
    """Return what a sampler of the same model tells, and its line, where intervals are too narrow; else nothing."""
    too_narrow = fit.method == "cavi" and "gibbs" in fit.member.methods and not _leans(fit)
    if not too_narrow:
        return []
    words = (
        "A sampler draws from the same model without coordinate ascent's approximation, so it shows how wide the "
        "intervals should be if the model is right. It does not show whether the model is right. To sample:"
    )
    line = Code(fit_again(fit, output="sampled", method="gibbs"), "To sample the same model")
    return [More("How wide the intervals should be", [words, line])]


def _accuracy_words(fit: Fit, frame: Any) -> str:
    if is_counted(fit):  # nothing is modelled of annotators
        data: Any = fit.data
        used = ", or the gold label where there is one," * (fit.options.get("gold") == "use")
        several = data.num_annotations / max(fit.truth.num_units, 1)
        words = (
            f"“Share won” is the share of the annotator's labels that won the vote{used.removesuffix(',')}; a tied "
            "label counts by its share, with two tied labels by 1/2. It is not an accuracy: the annotator's own label "
            f"is one of the votes (here {several:.1f} per item on average), so the share is too high, and annotators "
            "who make the same errors also win. The 95 % intervals (Jeffreys) do not allow for this."
        )
    elif _leans(fit):
        words = (
            "Accuracy is the probability that another label of the annotator is right. What the model expects before "
            "any data outweighs what this crowd did (see the alert). The 95 % intervals may be too narrow."
        )
    else:
        words = (
            "Accuracy is the probability that the annotator gives the true label of an item, if labels are as frequent "
            "as the fit estimates."
        )
        if frame["accuracy_lower"].isna().all():
            words += " An estimate by EM has no intervals: do not rely on those of annotators with few annotations."
        elif is_approximate(fit):
            words += f" The 95 % intervals may be too narrow, because {TOO_LITTLE_SPREAD}."
        else:
            words += " Intervals are 95 % intervals."
    blind, number = _without_evidence(fit)
    if number:
        words += (
            f" Without any model, {number - blind:,} of {counted(number, 'annotators')} agree with the others more "
            "than chance would explain, by two standard errors or "
            f"more{' (“agreement z”)' if 'agreement_z' in frame else ''}."
        )
    if blind and "accuracy" in frame:
        words += (
            " The interval of the accuracy does not show this: with few annotations or many labels it is mostly the "
            "prior."
        )
    if {"accuracy", "share_right"} <= set(frame):
        words += " “Share right” is the share of the annotator's own labels that are right, by the fit."
        if not _leans(fit):
            words += (
                " Accuracy is about any item; with few annotations it stays closer to the prior, which is what the "
                "model expects of annotators before any data."
            )
    if "competence" in frame:
        words += (
            " Competence is how often the annotator knows the label; accuracy also counts guesses that happen to be "
            "right."
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


def _profiles(frame: Any, *, mentions: bool = False) -> Section:
    frame = frame.rename(columns={"decisions": "candidates"})
    below, both = frame["sensitivity"] + frame["specificity"] < 1, frame["specificity"].notna().any()
    words = "Sensitivity is how often the annotator chooses a candidate of the class when it is true. "
    if mentions:
        words += (
            "A discourse-new mention names something for the first time; a discourse-old one leads to an earlier one. "
        )
    words += "“Candidates” is how many of the class the annotator could choose. "
    if both:
        words += (
            "Specificity is how often it is not chosen when it is false. Where both add up to less than one the "
            f"annotator is below chance, and a choice counts against the candidate: {int(below.sum()):,} of "
            f"{len(frame):,} profiles. "
        )
    words += "Intervals are 95 %."
    high = frame["sensitivity_upper"].to_numpy(float)
    if (end := np.nanmax(high)) < 1 and (number := int(np.isclose(high, end, atol=1e-6).sum())) > 1:
        words += f" {number:,} of them end at {end:.2f}, the largest value on the model's grid: read “or more”."
    low = frame["sensitivity_lower"].to_numpy(float)
    if (end := np.nanmin(low)) > 0 and (number := int(np.isclose(low, end, atol=1e-6).sum())) > 1:
        words += f" {number:,} of them begin at {end:.2f}, the smallest value on the grid: read “or less”."
    by_gold = frame.attrs.get("by_gold", ())
    words += _clash(frame) if len(by_gold) else ""
    by_class = frame.groupby("class", sort=False)["candidates"].sum().sort_values(ascending=False)
    drawn: list[Any] = []
    hidden: list[str] = []
    for name in by_class.index[:_MOST_CLASSES]:
        of_class = frame[frame["class"] == name]
        shown = shown_annotators(of_class, "sensitivity", ("sensitivity_lower", "sensitivity_upper"), "candidates")
        hidden = hidden or _left_out(of_class, shown, "candidates")
        series = {name: name for name in ("sensitivity", "specificity")[: 2 if both else 1]}
        worse = (shown["sensitivity"] + shown["specificity"] < 1).to_numpy()
        title = f"Class {shown_name(name)}"
        drawn.append(annotator_figures.reliability(shown, title, series, below=worse, amount="candidates"))
    named = {f"{name}_upper": "to" for name in ("sensitivity", "specificity")}
    named |= {"sensitivity_lower": "95 % from", "specificity_lower": "specificity, 95 % from"}
    order = np.argsort(frame["sensitivity"].to_numpy(), kind="stable")
    texts = {"right by gold": [by_gold[row] for row in order]} if len(by_gold) else {}
    table = frame.iloc[order].rename(columns=named)
    profiles = Table(table, "Annotators by class, lowest sensitivity first.", of="annotators", texts=texts)
    gist = f"sensitivity {frame['sensitivity'].min():.2f} to {frame['sensitivity'].max():.2f}"
    gist = f"{int(below.sum()):,} of {len(frame):,} profiles below chance" if both else gist
    return Section("Annotators", [words, *hidden, drawn, profiles], gist)


def _clash(frame: Any) -> str:
    """Say what the column by gold is, and name one who is right each time and has less than another who is not."""
    words = " “Right by gold” counts the annotator's labels that match gold, for mentions of that class."
    for _, of_class in frame.groupby("class", sort=False):
        always, others = of_class[of_class["right by gold"] == 1], of_class[of_class["right by gold"] < 1]
        if len(always) and len(others) and always["sensitivity"].min() < others["sensitivity"].max():
            low = always.loc[always["sensitivity"].idxmin()]
            high = others.loc[others["sensitivity"].idxmax()]
            one, other = (f"“{row['annotator']}”" for row in (low, high))
            return (
                f"{words} The model does not use gold labels, and of few mentions of a class an estimate stays "
                f"near the average annotator: {one}, always right, has {low['sensitivity']:.2f} ({low['class']}), "
                f"while {other}, not always right, has {high['sensitivity']:.2f}."
            )
    return words


# What they confuse ----------------------------------------------------------------------------------------------------


def _confusion(fit: Fit, frame: Any) -> Section:
    crowd = fit.table("crowd")
    words = (
        "The probability that an annotator of this crowd gives each label to an item of each true label, with its 95 % "
        "interval below it; busier annotators count more. Darker cells are more probable, and wide intervals make "
        "cells paler. The number beside a true label is how many annotations its items have, by the fit. If these are "
        "few, the row mostly shows the prior; a row without any is blank."
    )
    words += (
        " Here the prior outweighs the annotations, and the intervals contain the truth too rarely." * _leans(fit)
    )
    truth: Any = fit.truth
    if truth.num_classes > _MOST_CLASSES:
        wrong = crowd[crowd["true_label"] != crowd["label"]]
        often = (wrong["annotations"] * wrong["probability"]).rename("expected_annotations")
        order = often.sort_values(ascending=False, kind="stable").index[:_MOST_CONFUSIONS]
        table = wrong.assign(expected_annotations=often.round().astype(int)).loc[order]
        named = {"true_label": "true label", "label": "label given", "lower": "95 % from", "upper": "to"}
        table = table.drop(columns="annotations").rename(columns=named | {"expected_annotations": "annotations, about"})
        what = (
            "The most frequent confusions of the crowd: how probably an annotator, taken by how much each annotates, "
            "gives the label to an item of that true label, and of how many annotations this is the case."
        )
        return Section("Confusions", [what, Table(table, "The most frequent confusions.")])
    fewest = _FEWEST_ANNOTATIONS * truth.num_classes
    value = next(one for one in (_measure(fit), "accuracy", "sensitivity") if one in frame)
    chosen = _least_accurate(frame, value, fewest, _MOST_MATRICES)
    if _leans(fit) and not len(chosen):
        few = f"No annotator has {_FEWEST_ANNOTATIONS} annotations for each label, on average, and what the model "
        return Section("Confusions", [f"{few}expects outweighs them: a matrix would show that, not what they confuse."])
    drawn = [annotator_figures.probability_matrix(crowd, "The crowd as a whole", amount="annotations")]
    blocks: list[Any] = [words, drawn]
    if len(chosen):
        matrices = fit.table("confusion", annotators=chosen)
        titles = {name: f"Annotator {shown_name(name)}" for name in frame["annotator"].iloc[chosen]}
        blocks.append(More(f"Annotators with {fewest:,} annotations or more who seem to err most", [[
            annotator_figures.probability_matrix(matrices[matrices["annotator"] == name], title, amount="annotations")
            for name, title in titles.items()
        ]]))  # fmt: skip
    else:
        blocks.append(
            f"No annotator has {_FEWEST_ANNOTATIONS} annotations for each label, on average: matrices of single ones "
            "would show what the model supposes."
        )
    return Section("Confusions", blocks, "" if _leans(fit) else _most_confused(crowd))


def _most_confused(crowd: Any) -> str:
    """Name the most probable error that is surely more probable than others on items of its true label are."""
    wrong = crowd[(crowd["true_label"] != crowd["label"]) & (crowd["annotations"] >= _FEWEST_ANNOTATIONS)]
    if not len(wrong):
        return ""
    if crowd["lower"].notna().any():  # an estimate by EM has no intervals, and stands for itself
        wrong = wrong[wrong["lower"] > wrong.groupby("true_label")["probability"].transform("mean")]
        if not len(wrong):
            return "no confusion is clearly more frequent than the others"
    most = wrong.loc[wrong["probability"].idxmax()]
    value, low, high = within(*most[["probability", "lower", "upper"]])
    held = f" [{low}, {high}]" if np.isfinite(most["lower"]) else ""
    return f"most often “{most['label']}” for “{most['true_label']}” ({value}{held})"


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
    return Section("Guesses", [words, drawn])


def _least_accurate(frame: Any, value: str, fewest: int, number: int) -> np.ndarray:
    """Return the codes of the annotators with the lowest accuracies, of those with enough annotations.

    Parameters
    ----------
    frame : data frame, one row an annotator, in the order of their codes.
    value : the column of the accuracies.
    fewest : annotations that they have.
    number : how many to return.
    """
    known = np.flatnonzero(frame["annotations"].to_numpy(float) >= fewest)
    return known[np.argsort(frame[value].to_numpy(float)[known], kind="stable")][:number]


def _busiest(frame: Any, number: int) -> np.ndarray:
    """Return the codes of the annotators with most annotations, who have a row each in the order of their codes."""
    amount = frame["annotations"].to_numpy(float)
    order = np.argsort(-amount, kind="stable")[:number]
    return order[amount[order] > 0]
