"""Tables of a fit of expert views: who sees what, how well, what contradicts it, and what to ask next."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.errors import ConsilienceWarning, NotConjugate, TooLarge, UnsupportedRequest
from consilience.models.expert_views.canonical import num_distinct
from consilience.models.expert_views.likelihood import Answering, AnswerTable, accuracies, answer_table
from consilience.models.expert_views.priors import linear
from consilience.models.expert_views.truth import ViewsTruth
from consilience.models.interface import Column, Table
from consilience.models.intervals import ends
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import first_in_rows

_ENDS = ends()
_ACCURACIES = ("sensitivity", "specificity")
_HELP = {
    "sensitivity": "how probably the expert says together of items that are",
    "specificity": "how probably the expert says apart of items that are",
    "knowledge": "of spammers: how probably the expert knows the answer",
    "guess": "of spammers: how probably one who does not know says together",
    "sensitivity_swapped": "the same, of pairs shown in the second way",
    "specificity_swapped": "the same, of pairs shown in the second way",
}
_SPAMMER = 0.1           # Youden's index below which an expert tells next to nothing.
_POINTS = 1000           # Quantiles of an accuracy, which stand for draws of it.
_MOST_EXPERTS = 2_000    # Of which all pairs are listed.
_CANDIDATES = 20_000     # Pairs that are looked at for what to ask next, in each view.
_MOST_ROWS, _MOST_QUESTIONS, _MOST_FEATURES = 1_000, 100, 20
_EVIDENCE_DRAWS = 1_000    # Of the log evidences, over which probabilities are averaged.
_SEEN = 0.01             # Views that are less probably used are not listed.


def views(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of the items: the most probable cluster of each in every view that is used, and its probability."""
    shown = truth.used_views()
    item, of_item = _placed(truth)
    probability = of_item[:, shown].reshape(-1, truth.most_clusters)
    return {
        "item": np.repeat(item, len(shown)), "view": np.tile(shown, len(item)),
        "cluster": probability.argmax(axis=1), "probability": probability.max(axis=1),
    }  # fmt: skip


def experts(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of the experts: the view of each, and how accurate each is, with 95 % intervals.

    Intervals of coordinate ascent are too narrow; those of Gibbs sampling hold where the model does. The prior's mean
    stands beside each accuracy: with few answers the one is drawn to the other. ``weight`` is the
    log odds, in nats, of an answer that is right in both kinds of pairs, with a 95 % interval. A ``spammer`` is an
    expert of whom sensitivity and specificity add up to less than 1.1 with a probability above one half. Under
    ``experts="spammer"`` there are ``knowledge``, how probably an expert knows the answer, and ``guess``, how probably
    he says together where he does not, with 95 % intervals. Of graded answers sensitivity is the mean
    grade of pairs that are together, and specificity one minus that of pairs that are apart, on a scale from 0 to 1.
    """
    probability = truth.view_probability
    view = probability.argmax(axis=1)
    number = np.arange(truth.num_experts)
    columns: dict[str, np.ndarray] = {"expert": number, "view": view, "probability": probability[number, view]}
    prior = _prior_means(resolved)
    for site in prior:
        found = posterior.summary(site)
        mean, _, lower, upper = (part if part.ndim == 1 else part[number, view] for part in found)
        columns |= {site: mean, f"{site}_lower": lower, f"{site}_upper": upper, f"{site}_prior": prior[site]}
    one, two = _accuracies(posterior, resolved, view)
    odds = sum(special.logit(np.clip(part, 1e-12, 1 - 1e-12)) for part in (one, two))  # finite, whatever is rounded
    columns |= {"weight": odds.mean(axis=1)}
    columns |= dict(zip(("weight_lower", "weight_upper"), np.quantile(odds, _ENDS, axis=1), strict=True))
    useless = (one + two < 1 + _SPAMMER).mean(axis=1)
    answers = np.bincount(np.asarray(resolved.data.expert), minlength=truth.num_experts)
    return {**columns, "spammer_probability": useless, "spammer": useless > 0.5, "answers": answers}


def same_view(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of the pairs of experts: how probably they have the same view.

    Raises
    ------
    TooLarge : there are too many experts for a table of their pairs.
    """
    if truth.num_experts > _MOST_EXPERTS:
        raise TooLarge(
            f"{truth.num_experts:,} experts have too many pairs for a table; ask for some by fit.truth.same_view(a, b)"
        )
    one, other = np.triu_indices(truth.num_experts, 1)
    return {"expert_a": one, "expert_b": other, "probability": truth.same_view_probability(one, other)}


def view_sizes(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of the views: how probably each is used, by how many experts, and the sizes of its clusters."""
    shown = np.flatnonzero(truth.used_probability > _SEEN)
    _, of_item = _placed(truth)
    label = of_item[:, shown].argmax(axis=2)
    size = np.stack([(label == cluster).sum(axis=0) for cluster in range(truth.most_clusters)], axis=1)
    texts = [" + ".join(map(str, sorted(row[row > 0].tolist(), reverse=True))) for row in size]
    return {
        "view": shown, "used": truth.used_probability[shown], "experts": truth.view_probability.sum(axis=0)[shown],
        "clusters": (size > 0).sum(axis=1), "sizes": np.array(texts, object),
    }  # fmt: skip


def contradictions(
    posterior: Posterior, resolved: Resolved, truth: ViewsTruth, limit: int = _MOST_ROWS
) -> dict[str, np.ndarray]:
    """Table of the answers against which the posterior of their pair is, the least probable answer first.

    These say together of items that are more probably apart in what the expert has in mind, or apart of items that are
    more probably together: ``together`` is that probability. The answer itself is among those that it follows from.
    ``probability`` is that of the answer as it stands, from this expert, who errs at times. ``gain`` says how worth it
    is to ask again: what another answer of the best expert of the view would tell of that, in nats.
    """
    data = resolved.data
    expert, item_a, item_b, answer = (np.asarray(one) for one in (data.expert, data.item_a, data.item_b, data.together))
    own = truth.pair_probability(item_a, item_b, expert)  # and the expert has the view
    together = own.sum(axis=1)
    means, scale = _mean_answering(posterior, resolved, truth), data.scale[answer]
    kind = answer if data.order is None else answer + data.num_answers * np.asarray(data.order)
    apart_says, together_says = (part[expert, :, kind] for part in means)
    probability = (own * together_says + (truth.view_probability[expert] - own) * apart_says).sum(axis=1)
    order = np.argsort(probability, kind="stable")
    against = ((scale > 0.5) & (together < 0.5)) | ((scale < 0.5) & (together > 0.5))
    order = order[against[order]][:limit]
    view = truth.view_probability[expert[order]].argmax(axis=1)
    gain = np.zeros(len(order))
    for one in np.unique(view):
        rows = view == one
        says = (part[truth.view_probability.argmax(axis=1) == one, one, : data.num_answers] for part in means)
        pairs = truth.pair_probability(item_a[order][rows], item_b[order][rows])
        gain[rows] = information(pairs[:, one, None], *says).max(axis=1)
    return {
        "expert": expert[order], "item_a": item_a[order], "item_b": item_b[order],
        "answer": data.answer_names[answer[order]], "probability": probability[order],
        "together": together[order], "gain": gain,
    }  # fmt: skip


def questions(
    posterior: Posterior, resolved: Resolved, truth: ViewsTruth, limit: int = _MOST_QUESTIONS
) -> dict[str, np.ndarray]:
    """Table of pairs that are most worth an answer, in every view that is used, and of whom to ask it.

    ``gain`` is what one answer of this expert is expected to tell, in nats, of whether the two items are together in
    the view; ``together`` how probably they are. All views have equally many pairs, where they have so many: an expert
    who is better than all others would take the whole table else. Candidates are random pairs, of uncertain items
    above all, and never all pairs. A pair that the expert has judged already is not asked again.
    """
    data, means = resolved.data, _mean_answering(posterior, resolved, truth)
    of_expert = truth.view_probability.argmax(axis=1)
    asked = np.asarray(data.item_a).astype(np.int64) * truth.num_units + np.asarray(data.item_b)
    known = asked * truth.num_experts + np.asarray(data.expert)
    views = np.intersect1d(truth.used_views(), of_expert)
    item, of_item = _placed(truth)
    parts = []
    for view in views if len(item) > 1 else ():
        expert = np.flatnonzero(of_expert == view)
        a, b = _candidates(of_item[:, view])
        near = (of_item[a, view] * of_item[b, view]).sum(axis=1)
        best = np.argsort(-np.minimum(near, 1 - near), kind="stable")[: 4 * limit]
        a, b = item[a[best]], item[b[best]]
        together = truth.pair_probability(a, b)[:, view]
        gain = information(together[:, None], *(part[expert, view, : data.num_answers] for part in means))
        pair = (a.astype(np.int64) * truth.num_units + b)[:, None] * truth.num_experts + expert
        gain = np.where(np.isin(pair, known), -1.0, gain)
        chosen = gain.argmax(axis=1)
        gain = gain.max(axis=1)
        own = np.argsort(-gain, kind="stable")[: -(-limit // len(views))]
        parts.append((a[own], b[own], np.full(len(own), view), expert[chosen[own]], together[own], gain[own]))
    columns = [np.concatenate(part) for part in zip(*parts, strict=True)] if parts else [np.zeros(0, int)] * 6
    order = np.argsort(-columns[5], kind="stable")
    order = order[columns[5][order] > 0][:limit]
    names = ("item_a", "item_b", "view", "expert", "together", "gain")
    return {name: values[order] for name, values in zip(names, columns, strict=True)}


def restarts(posterior: Posterior, *_: Any) -> dict[str, np.ndarray]:
    """Table of the restarts of coordinate ascent, the best first; empty after sampling.

    ``gap`` is how many nats the bound lies below the best, ``same_grouping`` whether the experts are grouped as in it.
    """
    bound = np.asarray(posterior.hidden.get("restart_bound", np.zeros(0)), float)
    probability = np.asarray(posterior.hidden.get("restart_view_probability", np.zeros((0, 1, 1))))
    order = np.argsort(-bound, kind="stable")
    view = probability.argmax(axis=2)[order]
    grouping = first_in_rows(view, probability.shape[2])
    return {
        "restart": order, "bound": bound[order], "gap": bound.max(initial=-np.inf) - bound[order],
        "same_grouping": (grouping == grouping[:1]).all(axis=1), "views": num_distinct(view),
    }  # fmt: skip


def evidence(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of the numbers of clusters that were compared, by log evidence; empty where there was no ladder.

    ``probability`` averages over the standard errors: of a thousand normal draws of the log evidences, the mean of how
    probable each number is, all being equally probable before. ``pairs_apart`` is the share of the pairs of items that
    are together by this number and apart by the one that was taken, or the other way round, in the views of experts.
    """
    clusters, value, error = np.asarray(posterior.hidden.get("evidence", np.zeros((0, 3))), float).T
    drawn = np.random.default_rng(0).normal(value, error, (_EVIDENCE_DRAWS, len(value)))
    probability = special.softmax(drawn, axis=1).mean(axis=0) if len(value) else value
    return {
        "clusters": clusters.astype(int), "log_evidence": value, "standard_error": error, "probability": probability,
        "pairs_apart": np.asarray(posterior.hidden.get("evidence_apart", np.zeros(len(value))), float),
    }  # fmt: skip


def ladder(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of the rungs of all ladders of the tempered sampler; empty after coordinate ascent."""
    none = np.zeros((0, 0))
    exponent, rate, mean = (np.asarray(posterior.hidden.get(f"ladder_{name}", none), float) for name in (
        "exponent", "swap_rate", "log_likelihood"
    ))  # fmt: skip
    place, rung = np.nonzero(~np.isnan(exponent))
    last = rung == np.bincount(place, minlength=len(exponent))[place] - 1
    return {
        "ladder": place, "rung": rung, "exponent": exponent[place, rung],
        "swap_rate": np.where(last, np.nan, rate[place, rung]), "mean_log_likelihood": mean[place, rung],
    }  # fmt: skip


def directions(
    posterior: Posterior, resolved: Resolved, truth: ViewsTruth, limit: int = _MOST_FEATURES
) -> dict[str, np.ndarray]:
    """Table of the features that tell the clusters of each view apart, those that tell most first.

    ``weight`` is what one unit of the feature, as it stands in the file, adds to the log odds of a cluster against the
    average of all, with a 95 % interval. ``importance`` compares features: the root mean square over the clusters of
    what one standard deviation adds. Constant features, which say nothing, are left out.

    Raises
    ------
    UnsupportedRequest : the link is not the linear one.
    """
    if truth.link is not linear:
        raise UnsupportedRequest("weights of a link of your own have no directions; only those of the linear link do")
    shown = truth.used_views()
    weight = np.take_along_axis(truth.drawn.weight, truth.drawn.place[:, :, None], axis=3)[:, shown, :-1]
    weight = weight - weight.mean(axis=3, keepdims=True)
    mean, (lower, upper) = weight.mean(axis=0), np.quantile(weight, _ENDS, axis=0)
    importance = np.sqrt((mean**2).mean(axis=2))
    varies = np.flatnonzero(np.ptp(np.asarray(resolved.data.feature), axis=0) > 0)
    order = varies[np.argsort(-importance[:, varies], axis=1, kind="stable")[:, :limit]]
    shape = (*order.shape, truth.most_clusters)
    view = np.broadcast_to(shown[:, None, None], shape)
    feature, cluster = np.broadcast_to(order[:, :, None], shape), np.broadcast_to(np.arange(shape[2]), shape)
    scale = truth.scaling.scale[order][:, :, None]
    number = np.arange(len(shown))[:, None]
    return {
        "view": view.ravel(), "feature": feature.ravel(), "cluster": cluster.ravel(),
        **{
            name: (part[number, order] / scale).ravel()
            for name, part in (("weight", mean), ("lower", lower), ("upper", upper))
        },
        "importance": np.broadcast_to(importance[number, order][:, :, None], shape).ravel(),
    }  # fmt: skip


def information(together: Any, apart_says: Any, together_says: Any) -> Any:
    """Return what one answer is expected to tell of whether two items are together, in nats; shapes are broadcast.

    Parameters
    ----------
    together : how probably they are.
    apart_says, together_says : ``(…, answer)``, of the expert who is asked: how probable each answer is, of pairs that
        are apart, and together.
    """
    of_answer = np.asarray(together)[..., None]
    mixed = of_answer * together_says + (1 - of_answer) * apart_says
    apart, known, whole = (special.entr(part).sum(axis=-1) for part in (apart_says, together_says, mixed))
    return whole - together * known - (1 - together) * apart


def answers(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> dict[str, np.ndarray]:
    """Table of how probably each expert gives each answer, to pairs that are together and apart, with 95 % intervals.

    Where pairs were shown in two ways each has rows of its own. Spammers have none, but ``knowledge`` and ``guess`` in
    the table of experts.
    """
    data, table = resolved.data, answer_table(resolved)
    if "guess" in table.sites:
        return {name: np.zeros(0) for name in ("expert", "order", "pair", "answer", "probability", "lower", "upper")}
    cells = _site_probabilities(posterior, table.sites)
    own = truth.view_probability.argmax(axis=1) if cells.shape[1] > 1 else 0
    cells = cells[np.arange(truth.num_experts), own]  # (expert, site, answer, mean and ends)
    shape = (truth.num_experts, data.num_orders, 2, data.num_answers)
    parts = [cells[:, one[:, 0], one[:, 1]].reshape(*shape[:2], shape[3], 3) for one in table.place]
    expert, order, pair, answer = np.indices(shape).reshape(4, -1)
    probability, lower, upper = np.stack(parts, axis=2).reshape(-1, 3).T
    return {
        "expert": expert, "order": order, "pair": np.array(["apart", "together"], object)[pair],
        "answer": data.answer_names[answer], "probability": probability, "lower": lower, "upper": upper,
    }  # fmt: skip


# Helpers --------------------------------------------------------------------------------------------------------------


def _placed(truth: ViewsTruth) -> tuple[Int[np.ndarray, " item"], Float[np.ndarray, "item view cluster"]]:
    """Return the items whose clusters are known, by their codes, and how probably each is in each cluster.

    Those are all but the ones that nobody judged, where the link that would tell of these was not saved.
    """
    if truth.link_known or not len(truth.silent):
        return np.arange(truth.num_units), truth.cluster_probability
    warnings.warn(
        f"{len(truth.silent):,} of {truth.num_units:,} items are in no pair and are left out: they are predicted by a "
        "link of your own, which is not saved; ask where the fit was made",
        ConsilienceWarning,
        stacklevel=4,
    )
    return truth.judged, truth.judged_probability


def _candidates(probability: Float[np.ndarray, "item cluster"]) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct random pairs of items, one of which at least is drawn the more often the less it is known."""
    number, random = len(probability), np.random.default_rng(0)
    doubt = special.entr(probability).sum(axis=1)
    doubt = doubt + 1e-3 * doubt.max(initial=0) + 1e-12
    share = doubt / doubt.sum()
    first = random.choice(number, _CANDIDATES, p=share)
    second = np.concatenate([
        random.choice(number, _CANDIDATES // 2, p=share), random.integers(0, number, _CANDIDATES - _CANDIDATES // 2),
    ])  # fmt: skip
    a, b = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    return np.divmod(np.unique((a * number + b)[a < b]), number)


def _accuracies(
    posterior: Posterior, resolved: Resolved, view: Int[np.ndarray, " expert"]
) -> list[Float[np.ndarray, "expert draw"]]:
    """Return draws of sensitivity and specificity of each expert, in his own view.

    Those of coordinate ascent are quantiles of equal steps, of which each is taken once, at random beside each other.
    """
    found: list[np.ndarray] = []
    for site in _ACCURACIES:
        values = np.asarray(posterior.value(site), float)
        values = np.moveaxis(values, 0, -1) if posterior.form == "draws" else values
        values = values if values.ndim == 2 else values[np.arange(len(view)), view]
        if posterior.form == "closed":
            # Symmetric experts have one accuracy, and its draws, twice.
            order = np.random.default_rng(len(found) * (resolved.settings.experts != "symmetric")).permutation(_POINTS)
            values = special.betaincinv(values[:, :1], values[:, 1:], (order + 0.5) / _POINTS)
        found.append(values)
    return found


def _site_probabilities(posterior: Posterior, sites: tuple[str, ...]) -> Float[np.ndarray, "expert own site answer 3"]:
    """Return means and ends of intervals of how probable answers are; ``own`` is the view, or of size one."""

    def of_site(site: str) -> np.ndarray:
        mean, _, lower, upper = posterior.summary(site)
        found = np.stack([mean, lower, upper], axis=-1)
        if not site.startswith("answers"):
            found = np.stack([found, 1 - found[..., [0, 2, 1]]], axis=-2)
        return found if found.ndim > 3 else found[:, None]

    return np.stack([of_site(site) for site in sites], axis=2)


def _mean_answering(posterior: Posterior, resolved: Resolved, truth: ViewsTruth) -> Answering:
    """Return how probable each answer is, ``(expert, view, kind)``, at the mean of what the experts are."""
    table = answer_table(resolved)
    if "guess" in table.sites:
        table = AnswerTable(_ACCURACIES, np.array([[[1, 0], [1, 1]], [[0, 1], [0, 0]]]))
    shape = (*truth.view_probability.shape, table.place.shape[1])
    parts = table.read(_site_probabilities(posterior, table.sites)[..., 0])
    return Answering(*(np.broadcast_to(part, shape) for part in parts))


def _prior_means(resolved: Resolved) -> dict[str, np.ndarray]:
    """Return the prior means of the sites in the table of experts; not a number where the prior is not known."""
    table, data = answer_table(resolved), resolved.data
    own = np.full((data.num_experts, len(table.sites), data.num_answers), np.nan)
    for place, site in enumerate(table.sites):
        with contextlib.suppress(NotConjugate):
            if resolved.given is not None:
                own[:, place] = resolved.concentration(site)
    own /= own.sum(axis=-1, keepdims=True)
    if "guess" in table.sites:
        known, says = own[..., 0].T
        right = {"sensitivity": known + (1 - known) * says, "specificity": known + (1 - known) * (1 - says)}
        return {**right, "knowledge": known, "guess": says}
    return accuracies(Answering(*map(np.log, table.read(own))), data.scale)


# The tables -----------------------------------------------------------------------------------------------------------

_ITEMS = (Column("item_a", "item"), Column("item_b", "item"))
_INTERVAL = (Column("lower", help="of the 95 % interval"), Column("upper", help="of the 95 % interval"))
_VIEW = Column("view", help="its number, a name and nothing more")
_CLUSTER = Column("cluster", help="its number in the view")

TABLES = (
    Table(
        name="views", help="The most probable cluster of each item in every view that is used.", make=views,
        columns=(Column("item", "item"), _VIEW, _CLUSTER, Column("probability", help="of the cluster")),
    ),
    Table(
        name="experts", help="The view of each expert, and how accurate each is.", make=experts,
        columns=(
            Column("expert", "expert"), _VIEW, Column("probability", help="of the view"),
            *(
                Column(f"{site}{end}", help=help)
                for site in _HELP
                for end, help in (
                    ("", _HELP[site]), ("_lower", "of the 95 % interval"), ("_upper", "of the 95 % interval"),
                    ("_prior", "mean of the prior"),
                )
            ),
            Column("weight", help="log odds, in nats, of an answer that is right in both kinds of pairs"),
            Column("weight_lower", help="of the 95 % interval"), Column("weight_upper", help="of the 95 % interval"),
            Column("spammer_probability", help="that sensitivity and specificity add up to less than 1.1"),
            Column("spammer", help="whether that is more probable than not"), Column("answers", help="how many"),
        ),
    ),
    Table(
        name="answers", help="How probably each expert gives each answer.", make=answers,
        columns=(
            Column("expert", "expert"), Column("order", help="in which of two ways the pair is shown"),
            Column("pair", help="together or apart"), Column("answer"), Column("probability"), *_INTERVAL,
        ),
    ),
    Table(
        name="view_sizes", help="How probably each view is used, by how many experts, and its clusters.",
        make=view_sizes,
        columns=(
            _VIEW, Column("used", help="probability that some expert has it"),
            Column("experts", help="expected number"), Column("clusters", help="how many are not empty"),
            Column("sizes", help="items of each cluster, the largest first"),
        ),
    ),
    Table(
        name="same_view", help="How probably two experts have the same view.", make=same_view,
        columns=(Column("expert_a", "expert"), Column("expert_b", "expert"), Column("probability")),
    ),
    Table(
        name="contradictions", help="Answers against which the posterior of their pair is.", make=contradictions,
        columns=(
            Column("expert", "expert"), *_ITEMS, Column("answer", help="as it was given"),
            Column("probability", help="of the answer, from this expert"),
            Column("together", help="probability that the items are, in what the expert has in mind"),
            Column("gain", help="what another answer of the best expert of the view would tell, in nats"),
        ),
    ),
    Table(
        name="questions", help="Pairs that are most worth an answer, and whom to ask.", make=questions,
        columns=(
            *_ITEMS, _VIEW, Column("expert", "expert"), Column("together", help="probability that the items are"),
            Column("gain", help="what one answer is expected to tell of that, in nats"),
        ),
    ),
    Table(
        name="directions", help="Features that tell the clusters of each view apart.", make=directions,
        columns=(
            _VIEW, Column("feature", "feature"), _CLUSTER,
            Column("weight", help="what one unit of the feature adds to the log odds of the cluster"), *_INTERVAL,
            Column("importance", help="root mean square over clusters of what one standard deviation adds"),
        ),
    ),
    Table(
        name="evidence", help="How probable each number of clusters is that was compared.", make=evidence,
        columns=(
            Column("clusters", help="most clusters of a view"), Column("log_evidence", help="in nats"),
            Column("standard_error", help="of that"), Column("probability", help="of this number among them"),
            Column("pairs_apart", help="share of pairs that are together by this number or by the one taken, not both"),
        ),
    ),
    Table(
        name="ladder", help="The rungs of the tempered sampler; none after coordinate ascent.", make=ladder,
        columns=(
            Column("ladder", help="its number"), Column("rung", help="its number, from the answers to the prior"),
            Column("exponent", help="of the likelihood of the answers"),
            Column("swap_rate", help="with the next rung"),
            Column("mean_log_likelihood", help="of the answers, in nats"),
        ),
    ),
    Table(
        name="restarts", help="Restarts of coordinate ascent, the best first; none after sampling.", make=restarts,
        columns=(
            Column("restart", help="its number"), Column("bound", help="in nats"),
            Column("gap", help="nats below the best bound"),
            Column("same_grouping", help="whether the experts are grouped as in the best one"),
            Column("views", help="how many have experts"),
        ),
    ),
)  # fmt: skip
