r"""How good a system is that looked at the items itself: its errors are independent of the annotators'.

A posterior given annotators does not know that a prediction is evidence too: a system that is better than they are
looks no better. So a *response model* says how a system predicts x from plausibilities :math:`\theta`, or from the
leading class y, which is of probability p:

.. math::  (1 - \varepsilon) \theta_x^\tau / \sum_k \theta_k^\tau + \varepsilon g_x \quad \text{(ambiguity)}, \qquad
    (1 - \varepsilon) 1[x = y] + \varepsilon g_x \quad \text{(knows or guesses; Hovy et al. 2013, MACE)}.

With Z the first fraction at the prediction, averaged over draws of :math:`\theta`, and H that at the leading class (p
at the prediction, and 1, of who knows or guesses), a Gibbs sampler draws who knew, then the parameters; the score is

.. math::  A = \sum_i w_i [(1 - \varepsilon) H_i(\tau) + \varepsilon \sum_k g_k p_i(k)].

Of a crowd, whose items share what annotators err, the model is fitted again with the system as one more annotator.
"""

from __future__ import annotations

import dataclasses
import warnings
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import ConsilienceWarning
from consilience.models.truth.classes import ClassTruth, marginals
from consilience.models.truth.truth import Marginals, Ranked, Shares

POWERS = np.array([0.5, 1, 1.5, 2, 3, 5, 8, 14, 30])  # what tau may be

# Draws of plausibilities for Z and H. Against 2,000 of them, scores of raters moved by at most .0002 (20,000 items of
# 5 labels), and that of the truth itself, which only the other model fits, by .02.
_MOST_SHARES = 400
_WARMUP, _LEAST_ESS, _MOST_THIN = 60, 400, 32
_UNITS = 1 << 11  # at a time
# Of a refit: labels that are not tempered, and of MPA as sure as they are right.
_PLAIN = {"dependence": 0.0, "decisions": "joint"}
_MOST_STEPS, _STEP = 300, 1e-6  # of a fixed point
_FLOOR = 1e-30  # below any mean of draws; its logarithm is finite

Weights = Callable[[slice], np.ndarray]  # of some units, ``(unit, replicate)``, the same whenever it is asked


class Form(NamedTuple):
    """What a system that looks says of each unit by a response model, where it does not guess; by power.

    Entries of a unit start at ``first`` and have increasing codes; ``unnamed`` is of each class without one, and
    ``leading`` is the probability of the class that leads in truth, H.
    """

    first: Int[np.ndarray, " boundary"]
    code: Int[np.ndarray, " entry"]
    named: Float[np.ndarray, "power entry"]
    unnamed: Float[np.ndarray, "power unit"]
    leading: Float[np.ndarray, "power unit"]

    def at(self, said: Int[np.ndarray, " unit"]) -> Float[np.ndarray, "power unit"]:
        """Return the probability of a prediction, Z; 0 below code 0."""
        unit, size = np.arange(len(said)), max(self.code.max(initial=0), said.max(initial=0)) + 1
        cell = np.append(np.repeat(unit, np.diff(self.first)) * size + self.code, -1)
        place = np.searchsorted(cell[:-1], unit * size + said)
        padded = np.append(self.named, np.zeros((len(self.named), 1), np.float32), axis=1)
        return np.where(said < 0, 0, np.where(cell[place] == unit * size + said, padded[:, place], self.unnamed))

    def chosen(self, kept: Bool[np.ndarray, " unit"]) -> Form:
        """Return the same of some units."""
        lengths, own = np.diff(self.first), np.repeat(kept, np.diff(self.first))
        first = np.append(0, np.cumsum(lengths[kept]))
        return Form(first, self.code[own], self.named[:, own], self.unnamed[:, kept], self.leading[:, kept])


def forms_of(truth: ClassTruth, kept: Bool[np.ndarray, " unit"] | None = None) -> dict[str, Form]:
    """Return the response models of a truth, "knows" and, of plausibilities, "ambiguity"; one pass over its draws.

    Memory is powers × (entries + units), however many draws there are. ``kept`` are the units that count.
    """
    forms = {"knows": knowing(marginals(truth))}
    if truth.answers(Shares()):
        forms["ambiguity"] = _ambiguity(truth)
    return forms if kept is None else {name: form.chosen(kept) for name, form in forms.items()}


def knowing(found: Marginals) -> Form:
    """Return the response model of who knows or guesses labels of these probabilities."""
    named, unnamed = (np.asarray(own, np.float32)[None] for own in (found.probability, found.unnamed))
    return Form(found.first, found.code, named, unnamed, np.ones_like(unnamed))


def _ambiguity(truth: ClassTruth) -> Form:
    first, code, num_classes = truth.entries
    named = np.zeros((len(POWERS), len(code)), np.float32)
    leading, unnamed = np.zeros((2, len(POWERS), truth.num_units), np.float32)
    truth = truth.with_fewer_draws(_MOST_SHARES)
    thin = slice(None, None, -(-truth.num_draws // _MOST_SHARES))
    for block in truth.blocks(Shares()):
        units, slots = block.values.items, block.values.entries
        bounds = first[units.start : units.stop + 1] - slots.start
        lengths = np.diff(bounds)
        shares = np.asarray(block.values.named)[: bounds[-1], thin]
        rest = (num_classes - lengths)[:, None].astype(np.float32)
        other = np.asarray(block.values.other)[: len(lengths), thin] / np.maximum(rest, 1)
        highest, has = np.where(rest > 0, other, 0), lengths > 0
        highest[has] = np.maximum(highest[has], np.maximum.reduceat(shares, bounds[:-1][has], axis=0))
        shares, other = shares / np.repeat(highest, lengths, axis=0), other / highest
        gathered = csr_array((np.ones(len(shares), np.float32), np.arange(len(shares)), bounds))
        for number, (own, each) in enumerate(zip(_powers(shares), _powers(other), strict=True)):
            chance = 1 / (gathered @ own + rest * each)
            leading[number, units] = chance.mean(axis=1)
            unnamed[number, units] = np.einsum("ud,ud->u", each, chance) / chance.shape[1]
            named[number, slots] = np.einsum("ed,ed->e", own, np.repeat(chance, lengths, axis=0)) / chance.shape[1]
    return Form(first, code, named, unnamed, leading)


def _powers(values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return `POWERS` of values from 0 to 1, by products: logarithms would take ten times as long."""
    root, two = np.sqrt(values), values * values
    three, five = two * values, two * two * values
    eight = five * three
    fourteen = eight * five * values
    return root, values, values * root, two, three, five, eight, fourteen, fourteen * fourteen * two


def responses(
    form: Form, said: Int[np.ndarray, " unit"], mean_lead: Float[np.ndarray, " class"], number: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw what a system errs by Gibbs sampling, thinned until its score has 400 effective draws, by 32 at most.

    ``said`` are predicted classes, of which -1, the last one, is never true; ``mean_lead`` is how probably each class
    leads, averaged over units. Returns epsilon, g ``(draw, class)``, the position of tau, and the score on units of
    equal weight. The same system gets the same draws, another one others.
    """
    random = np.random.Generator(np.random.SFC64([seed, zlib.crc32(said.astype(np.int64).tobytes())]))
    class_ = said % len(mean_lead)
    order = np.argsort(class_, kind="stable")  # classes as runs of units: sums over them need no index
    seen, starts, lengths = np.unique(class_[order], return_index=True, return_counts=True)
    looked = form.at(said)[:, order].astype(np.float32)
    logs, leading = np.log(np.maximum(looked, np.float32(_FLOOR))), form.leading.mean(axis=1, dtype=float)
    prior = _guesses(class_, len(mean_lead))
    error, guess, power, thin, kept = 0.3, prior / prior.sum(), len(looked) // 2, 1, []
    for sweep in range(-_WARMUP, _MOST_THIN * number):
        odds, own = (error / (1 - error) * guess[seen]).astype(np.float32), looked[power]
        know = random.random(len(own), np.float32) * (own + np.repeat(odds, lengths)) < own
        known = np.add.reduceat(know, starts, dtype=np.int64)
        error = np.clip(random.beta(0.5 + (lengths - known).sum(), 0.5 + known.sum()), 1e-12, 1 - 1e-12)
        counts = prior.copy()
        counts[seen] += lengths - known
        guess = random.dirichlet(counts)
        if len(looked) > 1:
            power = int(np.argmax(logs @ know.astype(np.float32) + random.gumbel(size=len(looked))))
        if sweep >= 0 and sweep % thin == 0:
            score = (1 - error) * leading[power] + error * guess @ mean_lead
            kept.append((error, guess.astype(np.float32), power, score))
        if sweep + 1 == thin * number and thin < _MOST_THIN:
            if ess([one[3] for one in kept]) >= min(_LEAST_ESS, number / 2):
                break
            kept, thin = kept[::2], 2 * thin
    return tuple(np.array(own) for own in zip(*kept, strict=True))  # type: ignore[return-value]


def _guesses(class_: Int[np.ndarray, " unit"], number: int) -> Float[np.ndarray, " class"]:
    """Return the concentrations of the prior of g."""
    # A quarter each of few classes, as published; of many they would outweigh the guesses.
    return min(0.25, 0.75 / number) + np.bincount(class_, minlength=number) / len(class_) / 2


def ess(draws: Any) -> float:
    """Return the bulk effective size of one chain: Geyer's (1992) initial sequence, of ranks as normal scores.

    Not that of the diagnostics, which splits the chain: of few draws it asks for many times as many sweeps.
    """
    from scipy import stats  # as long to import as JAX

    scores, number = stats.norm.ppf((stats.rankdata(draws) - 0.375) / (len(draws) + 0.25)), len(draws)
    if np.ptp(scores) == 0:
        return float(number)
    spectrum = np.abs(np.fft.rfft(scores - scores.mean(), 2 * number)) ** 2
    correlation = np.fft.irfft(spectrum)[: number // 2 * 2]
    pairs = (correlation / correlation[0]).reshape(-1, 2).sum(axis=1)
    positive = np.minimum.accumulate(pairs)[np.logical_and.accumulate(pairs > 0)]
    return float(number / max(2 * positive.sum() - 1, 1 / np.log10(number)))


class OwnLook(NamedTuple):
    """By response model the scores, and their means on units of equal weight; the lowest `copy_statistic` of any."""

    draws: dict[str, Float[np.ndarray, "system replicate"]]
    values: dict[str, Float[np.ndarray, " system"]]
    copy_statistic: Float[np.ndarray, " system"]


def own_look(
    forms: dict[str, Form], said: Int[np.ndarray, "system unit"], weights: Weights,
    pseudo_weight: Float[np.ndarray, " replicate"], pseudo_score: Float[np.ndarray, "system replicate"], seed: int = 0,
) -> OwnLook:  # fmt: skip
    """Draw the population scores of systems that looked at the items themselves.

    ``said`` are first choices, below 0 where that is no class of the truth; weights are those of the units, and of one
    that keeps intervals from collapsing. A system draws the same at any place among the others.
    """
    number, size = len(pseudo_weight), said.shape[1]
    forms, said, base, lead = _leads(forms, said)
    total, of_base, of_lead = np.zeros(number), np.zeros(number), np.zeros((lead.shape[1], number))
    of_leading = {name: np.zeros((len(own.leading), number)) for name, own in forms.items()}
    for start in range(0, size, _UNITS):
        weight = weights(units := slice(start, min(start + _UNITS, size)))
        total += weight.sum(axis=0, dtype=float)
        of_base += base[units] @ weight
        of_lead += lead[units].T @ weight
        for name, form in forms.items():
            of_leading[name] += form.leading[:, units] @ weight
    of_lead[:-1] += of_base
    mean_lead = np.asarray(lead.sum(axis=0), float) / size
    mean_lead[:-1] += base.mean(dtype=float)
    draws, values, copied = {name: np.empty((len(said), number)) for name in forms}, {}, {}
    for name, form in forms.items():
        values[name], copied[name] = np.empty((2, len(said)))
        for place, own in enumerate(said):
            error, guess, power, score = responses(form, own, mean_lead, number, seed)
            known = (1 - error) * of_leading[name][power, np.arange(number)]
            sums = known + error * np.einsum("rk,kr->r", guess, of_lead) + pseudo_weight * pseudo_score[place]
            draws[name][place], values[name][place] = sums / (total + pseudo_weight), score.mean()
            middle = float(error.mean()), guess.mean(axis=0, dtype=float), round(power.mean())
            copied[name][place] = copy_statistic(form, own, *middle)
    return OwnLook(draws, values, np.min(list(copied.values()), axis=0))


def _leads(
    forms: dict[str, Form], said: Int[np.ndarray, "system unit"]
) -> tuple[dict[str, Form], Int[np.ndarray, "system unit"], Float[np.ndarray, " unit"], csr_array]:
    """Return forms and predictions by codes of the classes that occur, with the probabilities of classes to lead.

    These are, of each unit, those of every class without an entry, and what each class ``(unit, class)`` has beyond
    that. The last class is never true.
    """
    knows, unit = forms["knows"], np.arange(said.shape[1])
    classes = np.unique(np.append(knows.code, said[said >= 0]))
    forms = {name: own._replace(code=np.searchsorted(classes, own.code)) for name, own in forms.items()}
    said, knows, base = np.where(said < 0, -1, np.searchsorted(classes, said)), forms["knows"], knows.unnamed[0]
    above = knows.named[0] - np.repeat(base, np.diff(knows.first))
    return forms, said, base, csr_array((above, knows.code, knows.first), (len(unit), len(classes) + 1))


class Responding:
    """What systems score that looked, where any of many units stand for the items; without draws, so that it is smooth.

    Parameters
    ----------
    forms : the response models, of all these units.
    said : first choices of the systems, below 0 where that is no class of the truth.
    """

    def __init__(self, forms: dict[str, Form], said: Int[np.ndarray, "system unit"]) -> None:
        self.forms, self._said, self._base, self._lead = _leads(forms, said)
        self._looked = {name: [form.at(own) for own in self._said] for name, form in self.forms.items()}
        self._last: dict[tuple[str, int], Any] = {}

    def at(self, units: Int[np.ndarray, " item"]) -> Float[np.ndarray, "form system"]:
        """Return the scores on units of equal weight."""
        mean_lead = np.asarray(self._lead[units].mean(axis=0), float)
        mean_lead[:-1] += self._base[units].mean(dtype=float)
        found = np.empty((len(self.forms), len(self._said)))
        for row, (name, form) in enumerate(self.forms.items()):
            for place, said in enumerate(self._said):
                looked, leading = self._looked[name][place][:, units], form.leading[:, units].mean(axis=1, dtype=float)
                # What was found last is near.
                error, guess, weight = _expected_response(looked, said[units], mean_lead, self._last.get((name, place)))
                self._last[name, place] = error, guess
                found[row, place] = weight @ ((1 - error) * leading + error * (guess @ mean_lead))
        return found


def _expected_response(
    looked: Float[np.ndarray, "power unit"], said: Int[np.ndarray, " unit"], mean_lead: Float[np.ndarray, " class"],
    start: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return epsilon and g of the model of `responses` by power, a fixed point of means, and how probable it is."""
    class_, size = said % len(mean_lead), len(said)
    prior = _guesses(class_, len(mean_lead))
    classes = csr_array((np.ones(size), class_, np.arange(size + 1)), (size, len(mean_lead)))
    if start is None:
        start = np.full(len(looked), 0.3), np.tile(prior / prior.sum(), (len(looked), 1))
    error, guess = start
    for _ in range(_MOST_STEPS):
        known, guessed = (1 - error)[:, None] * looked, error[:, None] * guess[:, class_]
        total = np.maximum(known + guessed, _FLOOR)
        share, before = guessed / total, error
        counts = prior + share @ classes
        error, guess = (0.5 + share.sum(axis=1)) / (size + 1), counts / counts.sum(axis=1, keepdims=True)
        if np.abs(error - before).max() < _STEP:
            break
    evidence = np.log(total).sum(axis=1)
    weight = np.exp(evidence - evidence.max())
    return error, guess, weight / weight.sum()


def copy_statistic(
    form: Form, said: Int[np.ndarray, " unit"], error: float, guess: np.ndarray, power: int = 0
) -> float:
    r"""Return by how many standard deviations predictions follow the annotators more closely than the truth would.

    With q the probabilities of the predictions of a unit under a response model, and h and v mean and variance of their
    logarithm, :math:`z = \sum_i (\log q_{i x_i} - h_i) / (\sum_i v_i)^{1/2}`. See `responses` for the parameters.
    """
    above = variance = 0.0
    for start in range(0, len(said), _UNITS):
        units = slice(start, min(start + _UNITS, len(said)))
        slots, lengths = slice(*form.first[[start, units.stop]]), np.diff(form.first[start : units.stop + 1])
        looked = np.repeat(form.unnamed[power, units, None].astype(float), len(guess), axis=1)
        looked[:, -1] = 0
        looked[np.repeat(np.arange(len(lengths)), lengths), form.code[slots]] = form.named[power, slots]
        q = error * guess + (1 - error) * looked
        logs = np.log(np.maximum(q, _FLOOR))
        mean = (q * logs).sum(axis=1)
        above += float((logs[np.arange(len(logs)), said[units]] - mean).sum())
        variance += float(((q * logs**2).sum(axis=1) - mean**2).sum())
    return above / np.sqrt(max(variance, _FLOOR))


def refit_own_look(
    fit: Any, said: Int[np.ndarray, " unit"], weights: Weights, pseudo_weight: Float[np.ndarray, " replicate"],
    pseudo_score: Float[np.ndarray, " replicate"], kept: Bool[np.ndarray, " unit"] | None = None,
) -> tuple[Float[np.ndarray, " replicate"], float]:  # fmt: skip
    """Draw the score of a system by a fit of the annotators and of it, and return its mean on equal weights too.

    Given labels, which are drawn, the score has the posterior of weighted units, however a model states errors. Labels
    are not tempered, as they are not for what a fit says of annotators: ``dependence`` would take the errors of the
    system for theirs. ``kept`` are the units that count, of which alone there are weights; see `own_look`.

    Raises
    ------
    UnsupportedRequest : the data are no annotations, or the priors of a loaded fit are known in words only.
    """
    data, item, settings = fit.data, np.flatnonzero(said >= 0), fit.resolved.settings
    name, nobody = max(map(str, data.annotators), key=len, default="") + "'", np.zeros(len(item), int)
    more = Annotations.from_codes(item, nobody, said[item], items=data.items, annotators=[name], labels=data.labels)
    plain = {name: own for name, own in _PLAIN.items() if hasattr(settings, name)}
    resolved = fit.resolved.replace(settings=dataclasses.replace(settings, **plain))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)  # the fit of the annotators has warned already
        truth = dataclasses.replace(fit, resolved=resolved).update(more, progress=False).truth
    draws = np.linspace(0, truth.num_draws - 1, len(pseudo_weight)).astype(int)
    kept = np.ones(len(said), bool) if kept is None else kept
    before, total, sums = np.append(0, np.cumsum(kept)), pseudo_weight, pseudo_weight * pseudo_score
    score = np.zeros(len(draws))
    for block in truth.blocks(Ranked(1)):
        units = block.units
        right = (block.real[:, :, 0][:, draws] == said[units, None])[kept[units]]
        weight = weights(slice(int(before[units.start]), int(before[units.stop])))
        total, sums = total + weight.sum(axis=0, dtype=float), sums + (weight * right).sum(axis=0, dtype=float)
        score += right.sum(axis=0) / kept.sum()
    mean = score.mean()
    # Labels by probability alone do not know that the score, too, is drawn. With W its variance given labels and B that
    # of its mean, the share f = B / W of the information is missing, and B is B / (1 - f) (Orchard & Woodbury 1972).
    missing = score.var() * kept.sum() / max(mean * (1 - mean), _FLOOR) if truth.independent_items else 0.0
    return sums / total + (1 / np.sqrt(1 - min(missing, 0.9)) - 1) * (score - mean), float(mean)
