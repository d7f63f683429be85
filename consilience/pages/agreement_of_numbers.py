"""The page on the agreement of labels that are numbers and hardly ever equal: how far they are apart, and no more."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from consilience.evaluation.agreement import Agreement
from consilience.models import OF_RATINGS
from consilience.pages import Action, Page, Section
from consilience.pages.agreement_first import verdict
from consilience.rounding import within


def page_of_numbers(found: Agreement, title: str, sizes: str, sections: Sequence[Section]) -> Page:
    """Return that page: of labels whose values were given alpha on an interval scale, else how to have it.

    Parameters
    ----------
    found : the agreement; see `Agreement.hardly_equal`.
    title, sizes : of the page, and of the data, in words.
    sections : of the page.
    """
    file = found.told.get("file", "")
    name = shlex.quote(file) if file else "labels.csv"
    means = Action(
        "Infer the mean of each item, and on which side of a threshold it lies; the numbers are the column rating:",
        f"consilience fit {OF_RATINGS} {name} --threshold T -o run && consilience report run -o ratings.html",
    )
    seldom = f"the labels are numbers with {found.counts.num_labels:,} values, which hardly ever are equal"
    if not found.measured:
        said = f"How often labels are equal says nothing of agreement here: {seldom}."
        apart = "Measure how far the numbers are apart, by Krippendorff's alpha:"
        command = f"consilience agreement {name} --values labels -o agreement.html"
        return Page(title, sizes, sections, verdict=said, actions=[Action(apart, command), means])
    alpha = found.alpha_of_numbers
    of_alpha = alpha.value, alpha.lower, alpha.upper
    value, low, high = within(*of_alpha)
    hold = f"{100 * found.level:g} % for these annotators"
    tile = f"Krippendorff's alpha, interval scale ({low} to {high}, {hold}); 0 is chance, 1 is full agreement"
    finding = f"Alpha counts how far labels are apart. How often they are equal says nothing of agreement: {seldom}."
    return Page(
        title, f"{sizes} · Krippendorff's alpha, interval scale", sections, verdict=verdict(*of_alpha),
        numbers={tile: value}, findings=[finding], actions=[means],
    )  # fmt: skip
