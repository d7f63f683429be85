r"""Scores of views: several clusterings of the same items, who of the experts has which, and what they will say next.

Arrays in, arrays out. Labels of views and clusters may be permuted: a true view is compared with the view that holds
most of its experts (`view_of_truth`), or views and truths are matched one to one (`match_views`).

* **clusterings**: any score of `consilience.evaluation.partitions`, or the adjusted mutual information ``ami``, of
  every view against every truth (`view_scores`). Say which labels are scored: those of items that experts judged have
  seen answers, those of predicted items have not.
* **experts**: whether they are grouped as in truth, and how probable the true grouping was thought, pair by pair
  (`grouping_scores`).
* **answers held out**: the mean log score and the Brier score of the probability of an answer (`answer_probability`),
  which are proper: nothing but the true probability has a better expectation. Pairs are held out for all experts, since
  an answer of another expert to the same pair tells much (`held_out_pairs`).
* **accuracies**: whether intervals hold the true ones (`interval_coverage`).
* **pairs together**: whether of the pairs that are together with a probability of .3 three in ten are
  (`reliability_of_pairs`).

AMI is :math:`(I - E)/(\bar H - E)`, with the mutual information I, the mean entropy :math:`\bar H`, and the expectation
E of I over all ways to put the items into clusters of the same sizes, in closed form.

References
----------
Vinh, Epps and Bailey (2010), Journal of Machine Learning Research 11: AMI. Chang, Chen, Cho, Castaldi, Silverman and Dy
(2017), ICML: the model of views.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from consilience.arrays import Bool, Float, Int
from consilience.evaluation.overlap import Overlap
from consilience.evaluation.partitions import contingency, score
from consilience.evaluation.scores import Count, by_method
from consilience.models.truth import truth_of
from consilience.models.truth.truth import VIEWS

# Probabilities below this are scored as this: no finite number of draws tells an event of it from an impossible one.
_LEAST_PROBABILITY = 1e-10

# Terms of the expected mutual information that are held at a time.
_BLOCK = 1 << 22


# Clusterings ----------------------------------------------------------------------------------------------------------


def view_scores(
    predicted: Int[np.ndarray, "draw view item"], truth: Int[np.ndarray, "truth item"], metric: str = "nmi"
) -> Float[np.ndarray, "draw view truth"]:
    """Score every view of every draw against every true one.

    Parameters
    ----------
    predicted : the cluster of each item in each view; -1 where an item has none, which leaves it out.
    truth : the same, of the true views.
    metric : ``ami``, or one of `consilience.evaluation.partitions.names`.
    """
    num_draws, num_views, num_items = predicted.shape
    rows = predicted.reshape(-1, num_items)
    columns = []
    for one in truth:
        found = contingency(rows, one[None])
        columns.append(_adjusted(found) if metric == "ami" else score(found, metric))
    return np.stack(columns, axis=-1).reshape(num_draws, num_views, len(truth))


def view_of_truth(
    view_probability: Float[np.ndarray, "expert view"], view_of_expert: Int[np.ndarray, " expert"]
) -> Int[np.ndarray, " truth"]:
    """Return for each true view the view that most of its experts are thought to have, by sums of probabilities.

    Parameters
    ----------
    view_probability : how probably each expert has each view.
    view_of_expert : the true one of each, from 0.
    """
    member = np.eye(int(view_of_expert.max(initial=-1)) + 1)[view_of_expert]
    return (member.T @ view_probability).argmax(axis=1)


def match_views(scores: Float[np.ndarray, "view truth"]) -> Int[np.ndarray, " truth"]:
    """Return for each true view the view it is matched with, so that the sum of the scores is largest; -1 without one.

    Parameters
    ----------
    scores : of views against truths, such as means of `view_scores` over draws.
    """
    matched = np.full(scores.shape[1], -1)
    view, truth = optimize.linear_sum_assignment(scores, maximize=True)
    matched[truth] = view
    return matched


def adjusted_mutual_information(
    predicted: Int[np.ndarray, "draws item"], truth: Int[np.ndarray, "other_draws item"]
) -> Float[np.ndarray, " draw"]:
    """Return the mutual information of two partitions beyond chance, as a share of what can be had.

    Parameters
    ----------
    predicted, truth : as in `consilience.evaluation.partitions.contingency`.

    Returns
    -------
    1 for equal partitions, 0 on average for unrelated ones.
    """
    return _adjusted(contingency(predicted, truth))


def _adjusted(found: Overlap) -> Float[np.ndarray, " draw"]:
    number = found.num_common
    draw = found.response_unit[found.response]
    of_cells = found.common * np.log(
        number[draw] * found.common / (found.response_size[found.response] * found.key_size[found.key])
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        information = np.bincount(draw, of_cells, len(number)) / number
        entropies = [
            np.log(number) - np.bincount(of_draw, size * np.log(size), len(number)) / number
            for of_draw, size in (
                (found.response_unit, found.response_size),
                (found.key_unit, found.key_size),
            )
        ]
        best, chance = sum(entropies) / 2, _expected_information(found)
        # Equal partitions that leave nothing to chance, such as one cluster, are 0 / 0.
        equal = (score(found, "merge-moves") == 0) & (number > 0)
        return np.where(equal, 1.0, (information - chance) / (best - chance))


def _expected_information(found: Overlap) -> Float[np.ndarray, " draw"]:
    """Return the expected mutual information of partitions with clusters of the given sizes, in nats."""
    number = found.num_common
    predicted = _distinct_sizes(found.response_unit, found.response_size)
    true = _distinct_sizes(found.key_unit, found.key_size)
    # All pairs of a distinct size on either side, draw by draw.
    per_draw = np.bincount(true.draw, minlength=len(number))
    repeats = per_draw[predicted.draw]
    one = np.repeat(np.arange(len(predicted.draw)), repeats)
    place = np.arange(len(one)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    other = (np.cumsum(per_draw) - per_draw)[predicted.draw[one]] + place
    draw = predicted.draw[one]
    sizes = np.stack([predicted.size[one], true.size[other], number[draw]])
    distinct, which = np.unique(sizes, axis=1, return_inverse=True)
    of_sizes = _expected_of_sizes(*distinct)[which.ravel()]
    return np.bincount(draw, predicted.clusters[one] * true.clusters[other] * of_sizes, len(number)).astype(float)


class _Sizes(NamedTuple):
    """Sizes of clusters that occur in a draw, and how many clusters have each; sorted by draw."""

    draw: np.ndarray
    size: np.ndarray
    clusters: np.ndarray


def _distinct_sizes(draw: np.ndarray, size: np.ndarray) -> _Sizes:
    width = int(size.max(initial=0)) + 1
    code, clusters = np.unique(draw * width + size, return_counts=True)
    return _Sizes(*np.divmod(code, width), clusters)


def _expected_of_sizes(
    a: Int[np.ndarray, " pair"], b: Int[np.ndarray, " pair"], number: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, " pair"]:
    """Return the expected share of the mutual information of two clusters: their overlap n is hypergeometric."""
    log_factorial = special.gammaln(np.arange(int(number.max(initial=0)) + 2) + 1.0)
    fixed = sum(log_factorial[part] for part in (a, b, number - a, number - b)) - log_factorial[number]
    lowest = np.maximum(1, a + b - number)
    length = np.minimum(a, b) - lowest + 1
    total = np.zeros(len(a))
    for rows in np.array_split(np.arange(len(a)), int(length.sum()) // _BLOCK + 1):
        pair = np.repeat(rows, length[rows])
        start = np.cumsum(length[rows]) - length[rows]
        n = lowest[pair] + np.arange(len(pair)) - np.repeat(start, length[rows])
        rest = number[pair] - a[pair] - b[pair] + n
        log_probability = fixed[pair] - sum(log_factorial[part] for part in (n, a[pair] - n, b[pair] - n, rest))
        share = n / number[pair] * np.log(number[pair] * n / (a[pair] * b[pair]))
        total += np.bincount(pair, share * np.exp(log_probability), len(a))
    return total


# Experts --------------------------------------------------------------------------------------------------------------


class GroupingScores(NamedTuple):
    """Whether experts are grouped as in truth.

    Parameters
    ----------
    ari : adjusted Rand index of each draw, or of the most probable views.
    log_score : mean over pairs of experts of the log probability of what is true, the same view or not; 0 is best.
    num_views : how many views have an expert, in each draw.
    """

    ari: Float[np.ndarray, " draw"]
    log_score: float
    num_views: Int[np.ndarray, " draw"]


def same_view(view_probability: Float[np.ndarray, "expert view"]) -> Float[np.ndarray, "expert expert"]:
    """Return how probably two experts have the same view where each has his independently of the others."""
    found = view_probability @ view_probability.T
    np.fill_diagonal(found, 1)
    return found


def grouping_scores(
    view: Int[np.ndarray, "draw expert"], probability: Float[np.ndarray, "expert expert"],
    truth: Int[np.ndarray, " expert"],
) -> GroupingScores:  # fmt: skip
    """Score the views of experts; labels of views do not matter.

    Parameters
    ----------
    view : the view of each expert in draws; one row where it is the most probable one.
    probability : how probably two experts have the same view, as `same_view` or the share of the draws.
    truth : the true view of each expert.
    """
    one, other = np.triu_indices(len(truth), 1)
    same = truth[one] == truth[other]
    ordered = np.sort(view, axis=1)
    return GroupingScores(
        ari=score(contingency(view, truth[None]), "ari"),
        log_score=float(answer_scores(probability[one, other], same).log_score.mean()),
        num_views=1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1),
    )


def num_views(fit: Any) -> Count:
    """Count the views that the experts of a fit have.

    Parameters
    ----------
    fit : a fit of constraints, or its truth.

    Returns
    -------
    Count : ``value``, ``sd``, ``interval`` and ``draws`` are of the number of views that have an expert, ``point``
        that of views that have one more probably than not, and ``table`` has the probability of each number.

    Raises
    ------
    UnsupportedRequest : the fit has no views.
    """
    truth: Any = truth_of(fit).read_as(VIEWS.name)
    draws = np.asarray(truth.num_views())
    return Count(
        title=by_method("number of views", fit), draws=draws.astype(float), point=float(len(truth.used_views())),
        expected=np.bincount(draws)[1:] / len(draws), label="probability", unit="views",
        how="as far as the model holds", pointed="views whose use is more probable than not: {}",
    )  # fmt: skip


# Answers --------------------------------------------------------------------------------------------------------------


class AnswerScores(NamedTuple):
    """Proper scores of each answer.

    Parameters
    ----------
    log_score : log probability of what was answered, at most 0; 0 is best.
    brier : squared distance of the probability from the answer; 0 is best.
    """

    log_score: Float[np.ndarray, "*answer"]
    brier: Float[np.ndarray, "*answer"]


def together(
    cluster_probability: Float[np.ndarray, "item view cluster"], item_a: Int[np.ndarray, " pair"],
    item_b: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "pair view"]:  # fmt: skip
    """Return how probably two different items are together in each view where each has its cluster independently."""
    return np.einsum("pvk,pvk->pv", cluster_probability[item_a], cluster_probability[item_b])


def answer_probability(
    pair_together: Float[np.ndarray, "*answer_view"], view_probability: Float[np.ndarray, "*expert_view"],
    sensitivity: Float[np.ndarray, "*expert_and_view"], specificity: Float[np.ndarray, "*expert_and_view"],
    expert: Int[np.ndarray, " answer"],
) -> Float[np.ndarray, "*answer"]:  # fmt: skip
    r"""Return how probably experts say that pairs are together.

    That is :math:`\sum_g \phi_g [A_g \alpha + (1 - A_g)(1 - \beta)]`, with the probability A that the pair is together
    in view g. Every array may have further axes in front, of draws; the mean over these is the predictive probability.

    Parameters
    ----------
    pair_together : shape ``(answer, view)``, of the pair of each answer.
    view_probability : shape ``(expert, view)``; of a draw 0 and 1.
    sensitivity, specificity : shape ``(expert,)``, or ``(expert, view)`` with an accuracy for each view.
    expert : who answers.
    """
    phi = view_probability[..., expert, :]
    accuracies = []
    for given in (sensitivity, specificity):
        by_view = given.ndim == view_probability.ndim
        accuracies.append(given[..., expert, :] if by_view else given[..., expert, None])
    sensitive, specific = accuracies
    return (phi * (pair_together * sensitive + (1 - pair_together) * (1 - specific))).sum(axis=-1)


def answer_scores(probability: Float[np.ndarray, "*answer"], answer: np.ndarray) -> AnswerScores:
    """Score the probabilities that answers are together; shapes are equal.

    Parameters
    ----------
    answer : what was answered, 1 or True for together.
    """
    given = np.where(answer, probability, 1 - probability)
    return AnswerScores(np.log(np.maximum(given, _LEAST_PROBABILITY)), (1 - given) ** 2)


def own_share(expert: Int[np.ndarray, " answer"], answer: np.ndarray, num_experts: int) -> Float[np.ndarray, " expert"]:
    """Return the share of each expert's answers that say together, half an answer of either kind added: a baseline."""
    return (np.bincount(expert, answer, num_experts) + 0.5) / (np.bincount(expert, minlength=num_experts) + 1)


def held_out_pairs(
    item_a: Int[np.ndarray, " answer"], item_b: Int[np.ndarray, " answer"], share: float, seed: int = 0
) -> Bool[np.ndarray, " answer"]:
    """Choose pairs at random, and return which answers are to them: all answers to a pair go together.

    Parameters
    ----------
    item_a, item_b : the pair of each answer, in either order.
    share : of the different pairs.
    """
    pairs = np.sort(np.stack([item_a, item_b]), axis=0)
    distinct, place = np.unique(pairs, axis=1, return_inverse=True)
    number = distinct.shape[1]
    chosen = np.zeros(number, bool)
    chosen[np.random.default_rng(seed).permutation(number)[: round(share * number)]] = True
    return chosen[place.ravel()]


# Accuracies and pairs -------------------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """Whether intervals hold the true values.

    Parameters
    ----------
    covered : of each quantity.
    width : of the intervals.
    """

    covered: Bool[np.ndarray, "*quantity"]
    width: Float[np.ndarray, "*quantity"]


def beta_interval(
    parameters: Float[np.ndarray, "*quantity 2"], level: float = 0.95
) -> tuple[Float[np.ndarray, "*quantity"], Float[np.ndarray, "*quantity"]]:
    """Return the central intervals of Beta distributions."""
    a, b = np.moveaxis(np.asarray(parameters, float), -1, 0)
    return special.betaincinv(a, b, (1 - level) / 2), special.betaincinv(a, b, (1 + level) / 2)


def interval_coverage(
    lower: Float[np.ndarray, "*quantity"], upper: Float[np.ndarray, "*quantity"], truth: Float[np.ndarray, "*quantity"]
) -> Coverage:
    """Return which intervals hold the true values; their mean is to be the level of the intervals."""
    return Coverage((lower <= truth) & (truth <= upper), upper - lower)


class PairReliability(NamedTuple):
    """Pairs by how probably they are together, in bins of equal width.

    Parameters
    ----------
    number : pairs in each bin.
    probability : their mean probability; NaN in an empty bin.
    together : the share of them that is together.
    error : mean distance of the two over pairs, the expected calibration error.
    """

    number: Int[np.ndarray, " bin"]
    probability: Float[np.ndarray, " bin"]
    together: Float[np.ndarray, " bin"]
    error: float


def reliability_of_pairs(
    probability: Float[np.ndarray, " pair"], truth: np.ndarray, num_bins: int = 10
) -> PairReliability:
    """Compare probabilities of being together with what is true.

    Parameters
    ----------
    truth : whether each pair is together.
    """
    bin_ = np.clip((probability * num_bins).astype(int), 0, num_bins - 1)
    number = np.bincount(bin_, minlength=num_bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(bin_, probability, num_bins) / number
        share = np.bincount(bin_, truth, num_bins) / number
    used = number > 0
    error = float((number[used] * np.abs(mean - share)[used]).sum() / max(number.sum(), 1))
    return PairReliability(number, mean, share, error)
