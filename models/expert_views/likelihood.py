"""How probable the answers are, given who is together: what the NumPyro model and the samplers have in common.

An expert has a row of probabilities of all answers for pairs that are together, and another one for pairs that are
apart; where it is known in which of two ways a pair was shown, two such rows for each way. Rows are probabilities of
one *site* each, Beta of two answers and Dirichlet of more, and experts may have rows in common:

| answers | sites | |
|---|---|---|
| together, apart | ``sensitivity``, ``specificity`` | how probably it is right, of pairs that are together, or apart |
| grades, don't know | ``answers_together``, ``answers_apart`` | probabilities of the answers, from apart to together |
| by way of showing | the same with ``_swapped`` | of pairs that were shown in the second way |
| of symmetric experts | the first of each two | grades of pairs that are apart are as probable as those turned round |
| of spammers | ``knowledge``, ``guess`` | the answer is right where he knows, and a guess where he does not |

Arrays have the view before the answer, so that gathers over pairs move whole rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.rows import numpy_of
from consilience.models.sites import Resolved
from consilience.notes import Remedy

SWAPPED = "_swapped"
"""What the names of sites end with that are of pairs shown in the second way."""


class Answering(NamedTuple):
    """Logarithms of how probably each expert gives each answer, shapes ``(…, expert, view or 1, kind)``.

    Parameters
    ----------
    apart, together : of pairs that are so.
    """

    apart: Any
    together: Any


class AnswerTable(NamedTuple):
    """Which site tells how probable an answer is.

    Parameters
    ----------
    sites : their names.
    place : ``(2, kind, 2)``; for pairs that are apart, then together, and each kind of answer: the number of the site,
        and which of its probabilities. Of spammers it does not hold.
    """

    sites: tuple[str, ...]
    place: Int[np.ndarray, "truth kind 2"]

    @property
    def cells(self) -> Float[np.ndarray, "truth kind cell"]:
        """Return a one where an answer counts for a probability of a site; these are flat."""
        number = 1 + self.place[..., 1].max()
        return np.eye(len(self.sites) * number)[self.place[..., 0] * number + self.place[..., 1]]

    def read(self, values: Any) -> Answering:
        """Return what stands in the place of each answer.

        Parameters
        ----------
        values : ``(…, site, probability)``.
        """
        return Answering(*(values[..., one[:, 0], one[:, 1]] for one in self.place))


def answer_table(resolved: Resolved) -> AnswerTable:
    """Return which site tells how probable an answer is, by the kind of experts and of answers.

    Raises
    ------
    UnsupportedRequest : spammers are to give grades, or to know in which way pairs were shown.
    """
    experts, data = resolved.settings.experts, resolved.data
    scale, orders = data.scale, data.num_orders
    if experts == "spammer":
        if len(scale) * orders > 2:
            text = "{experts} guesses together or apart, and neither grades nor orders; leave out {experts}"
            raise UnsupportedRequest(text, Remedy("experts", "spammer"))
        return AnswerTable(("knowledge", "guess"), np.zeros((2, 2, 2), int))
    answers, one = np.arange(len(scale)), experts == "symmetric"
    turned = np.where(np.isnan(scale), answers, int((~np.isnan(scale)).sum()) - 1 - answers)
    # A Beta site has first what is right; a Dirichlet one the answers as they come, but for one row that serves both.
    yes_or_no = len(scale) == 2
    names = ("sensitivity", "specificity") if yes_or_no else ("answers_together", "answers_apart")
    rows = (answers, turned) if yes_or_no else (turned if one else answers, answers)
    sites, place = [], np.empty((2, orders, len(scale), 2), int)
    for order in range(orders):
        for truth in (1, 0):
            if truth or not one:
                sites.append(names[1 - truth] + SWAPPED * order)
            place[truth, order] = np.stack([np.full(len(scale), len(sites) - 1), rows[truth]], axis=-1)
    return AnswerTable(tuple(sites), place.reshape(2, -1, 2))


def answering(values: Mapping[str, Any], resolved: Resolved) -> Answering:
    """Return how experts answer, from the sites that are drawn of experts of this kind; any axes may come first."""
    table, by_view = answer_table(resolved), resolved.settings.experts == "per-view"
    logs = []
    for site in table.sites:
        numpy, value = numpy_of(values[site]), values[site]
        is_row = site.startswith("answers")
        value = value if by_view else numpy.expand_dims(value, -1 - is_row)
        logs.append(numpy.log(value) if is_row else numpy.stack([numpy.log(value), numpy.log1p(-value)], axis=-1))
    stacked = numpy.stack(logs, axis=-2)
    return spammer_answering(stacked) if resolved.settings.experts == "spammer" else table.read(stacked)


def spammer_answering(logs: Any) -> Answering:
    """Return how spammers answer: rightly if they know, else by a guess.

    Parameters
    ----------
    logs : ``(…, 2, 2)``; logarithms of knowing whether the items are together and of not knowing, then of saying
        together without knowing and of saying apart.
    """
    numpy = numpy_of(logs)
    knows, guesses_not = logs[..., 0, 0], logs[..., 0, 1] + logs[..., 1, 1]
    guesses = logs[..., 0, 1] + logs[..., 1, 0]
    return Answering(
        numpy.stack([numpy.logaddexp(knows, guesses_not), guesses], axis=-1),
        numpy.stack([guesses_not, numpy.logaddexp(knows, guesses)], axis=-1),
    )


def accuracies(answers: Answering, scale: Any) -> dict[str, Any]:
    """Return sensitivity and specificity, by way of showing: how far answers that say something go the right way.

    Of grades that is the mean on a scale from 0 to 1; of two answers how probably they are right.
    """
    scale = np.asarray(scale)
    value, says = np.nan_to_num(scale), ~np.isnan(scale)
    found = {}
    for order in range(answers.together.shape[-1] // len(scale)):
        own = slice(order * len(scale), (order + 1) * len(scale))
        apart, together = (numpy_of(part).exp(part[..., own]) * says for part in answers)
        for name, share, right in (("sensitivity", together, value), ("specificity", apart, 1 - value)):
            found[name + SWAPPED * order] = (share * right).sum(axis=-1) / share.sum(axis=-1)
    return found


def log_view_weight(stick: Any, rest: Any) -> Float[Any, "*rung view"]:
    """Return the log prior probability of each view, from logarithms of the broken sticks and of what they leave."""
    numpy = numpy_of(rest)
    none = numpy.zeros_like(rest, shape=(*rest.shape[:-1], 1))
    left = numpy.concatenate([none, numpy.cumsum(rest, axis=-1)], axis=-1)
    return left + numpy.concatenate([stick, none], axis=-1)


def stick_parameters(size: Any, concentration: Any) -> Float[Any, "*rung stick 2"]:
    """Return the Beta parameters of the sticks, from how many experts each view has."""
    numpy = numpy_of(size)
    later = numpy.cumsum(size[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return numpy.stack([1.0 + size[..., :-1], concentration + later], axis=-1)


def site_counts(counts: Any, number: Any, cells: Any) -> Float[Any, "*rung expert view cell"]:
    """Return how often answers count for each probability of the sites.

    Parameters
    ----------
    counts, number : ``(…, kind)``; of answers on pairs that are together, and of all.
    cells : of `AnswerTable`.
    """
    # What is not together is apart; differences of sums may fall below zero by rounding.
    return counts @ cells[1] + numpy_of(counts).maximum(number - counts, 0) @ cells[0]


def log_likelihood(
    counts: Float[Any, "*rung expert view kind"], answers: Answering, number: Any
) -> Float[Any, "*rung expert view"]:
    """Return the log probability of each expert's answers, were each of the views his.

    Parameters
    ----------
    counts : of the answers on pairs that are together, in each view.
    answers : how experts answer.
    number : ``(…, expert, kind)``; of all answers.
    """
    return (counts * answers.together + (number[..., None, :] - counts) * answers.apart).sum(axis=-1)


def own_view(
    values: Float[Any, "*rung expert view kind"], view: Int[Any, "*rung expert"]
) -> Float[Any, "*rung expert kind"]:
    """Return what stands in the row of each expert's own view, or in the only row."""
    if values.shape[-2] == 1:
        return values[..., 0, :]
    return numpy_of(values).take_along_axis(values, view[..., None, None], axis=-2)[..., 0, :]
