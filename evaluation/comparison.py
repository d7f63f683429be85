"""A leaderboard that knows what it does not know: systems compared under an uncertain truth, on a finite set of items.

Two things make a ranking of systems uncertain. Another benchmark of the same kind would hold other **items**; and
annotators disagree, so that every draw of the **truth** gives each system another score (Stutz et al. 2023). How both
together become one interval, without counting the truth twice, says `consilience.evaluation.unit_sums`. All systems see
the same draws and the same weights of items, so that differences between systems are paired in both.

A third thing annotations do not tell: whether a prediction was made **from these annotations**. Then it says nothing
new of the truth, and a system is right as often as the annotators make it probable. A system that looked at the item
itself is evidence as an annotator is, and right more often than that. So a system has up to three *readings*, and
`provenance` says which of them count; see `consilience.evaluation.own_look`.

Scores of coreference are ratios of sums over documents. Documents are weighted in the place of items: the sums of each
are, before they are added and divided. Scores of partitions of records are weighted likewise, by groups of records that
neither a draw of the truth nor a system links (`consilience.evaluation.partitions`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.accept import as_class_map, as_contract, as_systems
from consilience.data.problems import check_option
from consilience.data.verdicts import Verdicts
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import answered, evaluate, require_exact, scoring_of
from consilience.evaluation.agreement.jackknife import check_level
from consilience.evaluation.anchoring import compare_anchored, compare_verdicts
from consilience.evaluation.classes import Metric
from consilience.evaluation.engine import PerUnit, Scoring, fold
from consilience.evaluation.independent import FEW, Moments
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.own_look import OwnLook, forms_of, knowing, own_look, refit_own_look
from consilience.evaluation.partitions import DISTANCES
from consilience.evaluation.readings import PROVENANCES
from consilience.evaluation.reliability import gold_scores
from consilience.evaluation.scores import monte_carlo_errors
from consilience.evaluation.unit_sums import (
    REPLICATES,
    UnitSums,
    combined_draws,
    doubt_draws,
    pseudo_scores,
    pseudo_weights,
    unit_draws,
    unit_weights,
)
from consilience.evaluation.without_annotators import leaves_out_annotators, repeated_errors
from consilience.models.intervals import LEVEL
from consilience.models.truth import truth_of
from consilience.notes import Remedy

# The response models of `own_look`, from the lower reading to the upper.
_FORMS = ("ambiguity", "knows")

# Standard deviations of log rho at which scores are looked up; draws by which an own look is.
_DOUBT, _FEW_DRAWS = np.arange(-3.0, 4.0), 100

# A copy statistic above this: predictions follow the annotators more closely than the truth itself would.
_COPIES = 3

_DEPENDENT = (
    "How often the annotators make the same errors is not known; the intervals allow for it (dependence {:.2f}, 95 % "
    "from {:.2f} to {:.2f})."
)
_DEPENDENT_LEFT_OUT = (
    "How much the annotators err together is not known, and not in these intervals: it is in those of top-k alone."
)
_READINGS = (
    "The annotations do not show whether the systems looked at the items themselves. The lower score is for "
    "predictions made from the annotations, for example by training on them: these are right as often as the "
    "annotations make probable. The upper score is for systems that looked at the items and whose errors are "
    "independent of the annotators'. If you know which is true, say so (option “provenance”){}."
)
ONE_KIND = (
    "P(best) assumes that systems of unknown provenance are of one kind: either all were made from the annotations, or "
    "all looked at the items. With provenance=\"mixed\" each system is considered separately, which can make P(best) a "
    "range, or a wider one."
)
"""What is said of P(best) where it supposes that."""
_ANCHOR = (
    "; or anchor the scores on gold labels of 20 random items or more, which the fit did not take for labels (option "
    "“gold”)"
)
_SEEN = "; or fit without the gold labels, so that scores can be anchored on them (option “gold” of both)"
_NOT_COUNTED = (
    "These annotations do not tell whether the systems looked at the items themselves. They are scored as if they were "
    "made from these annotations: a system that looked itself is better than its score."
)
_WITNESSES = (
    "Alone: of systems that know no more than the crowd. Own look: each system is a witness, whose errors are "
    "independent of the crowd's; one made from the crowd's chains gets too good a score. To rank by one of the two, "
    "say which (option “provenance”)."
)
_NO_CLASSES = "{class_groups} groups the classes of items, and verdicts have none; leave it out"
_DISTANCE = "of a distance less is better; compare by a score such as pairwise-f1, and evaluate distances"
_NOT_ANCHORED = "gold labels anchor scores whatever a system knows; leave out {responses}"
_NO_WITNESS = ' responses="annotator" also counts each system as a witness.'
_COPIED = "“{}” follows the annotators more closely than the truth itself would (z = {:.1f}); it counts as {}."
_AS_COPY, _NEVERTHELESS = "made from these annotations", "independent, as stated"
HELD_FIXED = (
    "Of systems that looked themselves: the annotators' errors are held fixed; systems that are said to be "
    "“independent” have the annotators fitted anew with each."
)
"""What is said of an own look that was not fitted."""
TOO_NARROW = (
    "Of systems that looked themselves: what items share, such as the annotators' errors, is held fixed, as there is "
    "no fit of annotators; the true interval is wider."
)
"""What is said of an own look that no fit of annotators stands behind."""
_UNPAIRED = "Each system was fitted by itself: differences between them are unpaired, which makes them wider."

# Normal vectors in the place of draws of the truth, where it has a closed form.
_VECTORS = 20_000


def compare(
    fit: Any,
    systems: Mapping[str, Any] | None = None,
    metric: str | Metric | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    provenance: str | Mapping[str, str] = "unknown",
    gold: str | None = None,
    anchor: str = "verdicts",
    exact: bool | None = None,
    level: float = LEVEL,
    seed: int = 0,
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
    responses: str = "ignored",
    class_groups: Any = None,
) -> Comparison:
    """Rank systems under the uncertainty of the truth and of the finite set of items.

    Parameters
    ----------
    fit : Fit
        A fit, or a `Truth`; or `Verdicts` of judges, a path or a table of them, which bring their systems along.
    systems : dict of str to Any, optional
        Predictions by name, at least one, each as `evaluate` takes it. Of classes of items, or all of them coreference
        chains of documents (`read_conll`), which need a fit of mentions with spans; documents are then weighted as
        items are. Or all of them partitions of records (`read_partition`), which need a fit of records; groups of
        records that nothing links are then weighted.
    metric : str or Metric, optional
        A name such as ``top-3``, or a `Metric`; ``top-1`` by default, of chains ``conll``, of partitions
        ``pairwise-f1``. See `evaluate`.
    columns : dict of str to str, optional
        Names of columns of predictions that are not read yet, such as ``{"class": "predicted"}``.
    provenance : str or dict of str to str, default "unknown"
        Where predictions come from, one word for all systems or a dict of them: ``annotations``, made from these
        annotations; ``independent``, the system looked at the items itself; ``unknown``, either, but all systems alike;
        ``mixed``, either, each for itself. An own look is counted for ``top-1``.
    gold : str, optional
        ``use`` anchors scores on the gold labels of 20 items or more, which the fit must not have seen: however
        wrong annotators or judges are, and wherever predictions come from, they are right if these items are a random
        sample (`consilience.evaluation.anchoring`). ``ignore`` does not. By default verdicts use what they have.
    anchor : str, default "verdicts"
        Of verdicts, what stands for them beside gold labels: their mean, ``verdicts``, or ``latent-class``.
    exact : bool, optional
        By default means over the truth are taken in closed form where there is one, as in `evaluate`, and from 1,000
        items on, whose mean is as good as normal, covariances too, so that nothing is drawn; True takes both of any
        number and refuses what has none; False takes draws.
    level : float, default 0.95
        Of the intervals.
    seed : int, default 0
        Of the item weights.
    missing : str, default "error"
        ``drop`` compares on the items, or records, that every system predicted.
    unknown : str, default "error"
        ``keep`` counts predicted classes that the data do not have as wrong; records that they do not have are left
        out.
    singletons : bool, default True
        Of chains, whether entities of one mention count.
    responses : str, default "ignored"
        Of chains, against a posterior of partitions: "annotator" counts each system, by itself, as a witness whose
        errors are independent of the crowd's given the truth, and gives that score as the own look beside the score of
        one that knows no more than the crowd, which "ignored" gives alone.
    class_groups : ClassMap or source of one, optional
        Groups of classes (risk categories), as `evaluate` takes them: adds ``by_group``, the score of each system given
        the group of each draw's top class.

    Returns
    -------
    Comparison
        The systems by rank, in ``table``, and what is not known about the ranking, in ``notes``; with groups of classes
        ``by_group`` too.

    Raises
    ------
    UnsupportedRequest : systems of several kinds, a metric that ranks nothing, no closed form where it is asked for, an
        own look where none is counted, provenance of a system that is not there, or too few gold labels.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> ours = cs.Predictions.from_lists([["no"], ["yes"]], classes=["no", "yes"])
    >>> theirs = cs.Predictions.from_lists([["yes"], ["yes"]], classes=["no", "yes"])
    >>> ranked = cs.compare(cs.fit("dirichlet", labels), {"theirs": theirs, "ours": ours})
    >>> ranked.table["system"].tolist()
    ['ours', 'theirs']
    """
    if systems is None:
        if class_groups is not None:
            raise UnsupportedRequest(_NO_CLASSES, Remedy("class_groups"))
        verdicts = as_contract(fit, Verdicts, whose="compare, without systems,", columns=columns)
        use = gold or ("ignore" if verdicts.gold is None else "use")
        return compare_verdicts(verdicts, gold=use, anchor=anchor, missing=missing, level=level, seed=seed)
    check_option("gold", gold or "ignore", ("ignore", "use"))
    check_option("anchor", anchor, ("verdicts", "latent-class"))
    check_level(level)
    given = as_systems(fit, systems, columns)
    _require_one_kind({name: system.kind for name, system in given.items()})
    origin = _provenance(provenance, given)
    policies = {"missing": missing, "unknown": unknown, "singletons": singletons, "groups": True}
    truth, scoring, name = scoring_of(fit, list(given.values()), metric, **policies)
    if name in DISTANCES:
        raise UnsupportedRequest(f"{name} ranks no systems: {_DISTANCE}")
    check_option("responses", responses, ("ignored", "annotator"))
    by_group = _by_group(fit, given, metric, class_groups, missing=missing, unknown=unknown)
    moments = None if exact is False else scoring.exact()
    if exact:
        require_exact(moments, name)
    if gold == "use":
        _require_anchorable(scoring, name, responses)
        mean = _means(scoring, name) if moments is None else moments.unit
        score, known = gold_scores(fit, list(given.values()), metric, missing=missing, unknown=unknown)
        anchored = compare_anchored(
            score, mean, np.tile(known, (len(given), 1)), systems=tuple(given), title=scoring.title(name),
            bounds=scoring.bounds.get(name, (0.0, 1.0)), points=scoring.points(name), level=level, seed=seed,
        )  # fmt: skip
        return dataclasses.replace(anchored, by_group=by_group)
    if moments is not None and (exact or scoring.num_units >= FEW):
        found, chains = _in_closed_form(scoring, moments, name, seed), 1
    else:
        chains = truth.num_chains
        found = _drawn(scoring, name, seed)
        if moments is not None:  # as `evaluate` has them
            found |= {"values": moments.unit.mean(axis=1), "mcse": np.zeros(len(given))}
        else:
            found["mcse"] = monte_carlo_errors(found["truth_draws"], chains) / scoring.widening
    if responses == "annotator":
        looked, notes = _as_witnesses(fit, given, metric, name, found, seed, policies), [_WITNESSES]
        looked["provenance"] = tuple(origin.values())
    else:
        looked, notes = _with_annotators(fit, truth, scoring, given, metric, name, origin, found, seed, unknown)
    notes += [*scoring.assumes, *_doubt_dependence(found, truth, scoring, seed)]
    return Comparison(
        systems=tuple(given), title=scoring.title(name), **found, **looked, points=scoring.points(name),
        notes=tuple(notes), num_items=scoring.num_units, unit=scoring.unit, level=level, num_chains=chains,
        limits=scoring.bounds.get(name, (0.0, 1.0)) or (-np.inf, np.inf), by_group=by_group,
    )  # fmt: skip


def _require_anchorable(scoring: Scoring, name: str, responses: str) -> None:
    if responses == "annotator":
        raise UnsupportedRequest(_NOT_ANCHORED, Remedy("responses"))
    if name in scoring.of_means or scoring.bounds.get(name, ()) is None:
        raise UnsupportedRequest(f"gold labels anchor means of scores with bounds, and {name} is none; choose another")


def _by_group(fit: Any, systems: Mapping[str, Any], metric: Any, class_groups: Any, **policies: Any) -> Any:
    """Return the scores of systems by group of classes, each on the items that it predicted; None without groups."""
    if class_groups is None:
        return None
    import pandas

    groups = as_class_map(fit, class_groups)  # read once
    scores = {name: evaluate(fit, one, metric, class_groups=groups, **policies) for name, one in systems.items()}
    tables = pandas.concat({name: score.by_group for name, score in scores.items()}, names=["system", None])
    return tables.reset_index("system").reset_index(drop=True)


def _provenance(given: str | Mapping[str, str], systems: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known of each system."""
    known = dict.fromkeys(systems, given) if isinstance(given, str) else given
    if strange := [name for name in known if name not in systems]:
        raise UnsupportedRequest(f"provenance is given of {', '.join(map(str, strange))}, which is no system here")
    if wrong := [word for word in known.values() if word not in PROVENANCES]:
        raise UnsupportedRequest(f"provenance is {wrong[0]!r}; give {', '.join(PROVENANCES[:-1])} or {PROVENANCES[-1]}")
    return {name: known.get(name, "unknown") for name in systems}


def _doubt_dependence(found: dict[str, Any], truth: Any, scoring: Scoring, seed: int) -> list[str]:
    """Add to draws how scores change with the dependence of annotators, and return what has to be said of it."""
    at, rho = truth.probabilities_at, truth.dependence
    if at is None:
        return []
    if scoring.mean_given is None:
        return [_DEPENDENT_LEFT_OUT]
    means = np.stack([scoring.mean_given(at(z)) for z in _DOUBT])
    _add_shared(found, doubt_draws(_DOUBT, means, seed, found["draws"].shape[1]))
    return [_DEPENDENT.format(rho.rho, rho.at(-1.96), rho.at(1.96))]


def _add_shared(found: dict[str, Any], more: Float[np.ndarray, "system replicate"]) -> None:
    found["draws"] = found["draws"] + more
    found["shared_draws"] = more if found["shared_draws"] is None else found["shared_draws"] + more


def _with_annotators(
    fit: Any, truth: Any, scoring: Scoring, systems: Mapping[str, Any], metric: Any, name: str, origin: dict[str, str],
    found: dict[str, Any], seed: int, unknown: str,
) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """Return what `_own_look` does, and add to draws of all readings how scores change with the annotators."""
    looks = truth.num_draws > 1 and set(origin.values()) != {"annotations"}
    repeated = repeated_errors(fit, truth, scoring, systems, metric, name, seed, looks=looks, unknown=unknown)
    looked, notes = _own_look(fit, truth, scoring, origin, seed, repeated is not None)
    if repeated is None:
        return looked, notes
    _add_shared(found, repeated.draws("", seed, found["draws"].shape[1]))
    if "own_draws" in looked:
        own, forms = looked["own_draws"], [form for form in _FORMS if form in repeated.deviations]
        looked["own_draws"] = own + np.stack([repeated.draws(form, seed, own.shape[2]) for form in forms])
    return looked, [*notes, repeated.note]


def _as_witnesses(
    fit: Any, systems: Mapping[str, Any], metric: Any, name: str, found: Mapping[str, Any], seed: int,
    policies: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Return scores with each system as a witness of the truth that scores it; its draws are as many as the others'."""
    values, draws, number = [], [], found["draws"].shape[1]
    for system in systems.values():
        truth = answered(fit, system.kind, system, "annotator")[0]
        own = _drawn(scoring_of(truth, [system], metric, **policies)[1], name, seed)
        values.append(own["values"])
        draws.append(np.resize(own["draws"][0], number))
    return {"own_values": np.stack(values, axis=1), "own_draws": np.stack(draws)[None]}


def _own_look(
    fit: Any, truth: Any, scoring: Scoring, origin: dict[str, str], seed: int, allowed: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the readings with an own look, where such is counted, and what has to be said of readings.

    ``allowed`` is whether intervals allow for what items share in another way.
    """
    words = set(origin.values())
    if words == {"annotations"} or truth.num_draws == 1:
        return {"provenance": tuple(origin.values())}, []
    if scoring.first_choice is None:
        if words & {"independent", "mixed"}:
            raise UnsupportedRequest(
                "own look is counted for top-1 only; leave provenance out, or give gold labels (gold='use')"
            )
        told = _NO_WITNESS if hasattr(truth_of(fit), "witnessed") else ""
        return {"provenance": tuple(origin.values())}, [_NOT_COUNTED + told]
    number, notes = _replicates(scoring), []
    common = functools.partial(_weights_of, seed, number), pseudo_weights(seed, number)
    score, kept = pseudo_scores(seed, len(origin), number), np.isin(np.arange(truth.num_units), scoring.place)
    looked = own_look(forms_of(truth, kept), scoring.first_choice, *common, score, seed)
    copied = looked.copy_statistic
    if truth.probabilities_at is not None:  # or as if annotators erred independently: whoever is right agrees with them
        copied = np.minimum(copied, _looks_at(truth, scoring.first_choice, kept, seed, -np.inf).copy_statistic)
    for name, z in zip(origin, copied, strict=True):
        if z > _COPIES and origin[name] != "annotations":
            stated = origin[name] == "independent"
            notes.append(_COPIED.format(name, z, _NEVERTHELESS if stated else _AS_COPY))
            origin = origin if stated else origin | {name: "annotations"}
    values, draws = (np.stack([own[form] for form in _FORMS if form in own]) for own in (looked.values, looked.draws))
    is_open = bool({"unknown", "mixed"} & set(origin.values()))
    known = [place for place, word in enumerate(origin.values()) if word == "independent"]
    can_refit = truth.dependence is not None and fit is not truth
    if truth.dependence is not None:
        values, draws = np.repeat(values, 2, axis=0), np.repeat(draws, 2, axis=0)
        if truth.probabilities_at is not None:
            ends = [_looks_at(truth, scoring.first_choice, kept, seed, z).values["knows"] for z in (-2.0, 2.0)]
            points = np.stack([ends[0], looked.values["knows"], ends[1]])
            draws += doubt_draws(np.array([-2.0, 0, 2]), points, seed, number)
    for place in known if can_refit else ():
        said = np.full(truth.num_units, -1)
        said[scoring.place] = scoring.first_choice[place]
        if (said >= 0).any():
            # Where nothing is tempered the fit anew is the one reading.
            rows = slice(0, 1 if truth.dependence.rho else 2)
            draws[rows, place], values[rows, place] = refit_own_look(fit, said, *common, score[place], kept)
    shares = truth.dependence is not None or not truth.independent_items or leaves_out_annotators(fit, truth)
    notes += [TOO_NARROW] if (known or is_open) and shares and not can_refit and not allowed else []
    notes += [HELD_FIXED] if is_open and can_refit else []
    notes += [_UNPAIRED] if can_refit and len(known) > 1 else []
    first = [_READINGS.format(_anchoring(fit))] if is_open else []
    first += [ONE_KIND] if of_one_kind(origin.values()) else []
    return {"provenance": tuple(origin.values()), "own_values": values, "own_draws": draws}, first + notes


def of_one_kind(provenance: Collection[str]) -> bool:
    """Return whether P(best) supposes that systems are of one provenance, which nobody said."""
    return list(provenance).count("unknown") > 1 and "mixed" not in provenance


def _anchoring(fit: Any) -> str:
    """Say how gold labels could settle it; empty where no data of that kind hold any, and of a truth without data."""
    setting = "" if truth_of(fit) is fit else getattr(fit.resolved.settings, "gold", "")
    return {"use": _SEEN, "ignore": _ANCHOR}.get(setting, "")


def _looks_at(truth: Any, said: np.ndarray, kept: np.ndarray, seed: int, z: float) -> OwnLook:
    """Return own looks of who knows or guesses, by few draws, were the dependence of annotators z deviations away."""
    weights, shape = functools.partial(_weights_of, seed, _FEW_DRAWS), (len(said), _FEW_DRAWS)
    forms = {"knows": knowing(truth.probabilities_at(z)).chosen(kept)}
    return own_look(forms, said, weights, np.zeros(_FEW_DRAWS), np.zeros(shape), seed)


def _weights_of(seed: int, number: int, units: slice) -> np.ndarray:
    return unit_weights(seed, units, number)


_IN_WORDS = {"chains": "coreference chains", "partition": "entities of records", "classes": "classes of items"}


def _require_one_kind(kinds: Mapping[str, str]) -> None:
    if len(set(kinds.values())) > 1:
        listed = " and ".join(
            f"{', '.join(name for name, own in kinds.items() if own == kind)} with {_IN_WORDS[kind]}"
            for kind in dict.fromkeys(kinds.values())
        )
        number = "two" if len(set(kinds.values())) == 2 else "three"
        raise UnsupportedRequest(f"systems of {number} kinds cannot be compared: {listed}; compare each kind by itself")


def _drawn(scoring: Scoring, name: str, seed: int) -> dict[str, Any]:
    """Return scores with one source of uncertainty or both, from draws of the truth."""
    sums = UnitSums(scoring)
    fold(scoring, sums)
    truth = sums.scores(name)
    if np.isneginf(truth).any():
        raise UnsupportedRequest(f"{name} is minus infinity for a system: it gives 0 to a class that may be true")
    truth = truth[:, np.isfinite(truth).all(axis=0)]
    if not truth.shape[1]:
        raise UnsupportedRequest(f"{name} is undefined for one of the systems in every draw; choose another metric")
    truth = scoring.widened(truth)
    both, items, shared = combined_draws(scoring, name, sums, truth, seed, _replicates(scoring))
    return {
        "values": truth.mean(axis=1), "draws": both, "truth_draws": truth, "item_draws": items, "shared_draws": shared,
    }  # fmt: skip


def _in_closed_form(scoring: Scoring, moments: Moments, name: str, seed: int) -> dict[str, Any]:
    """Return the same from means and covariances: normal vectors in the place of draws of the truth."""
    values, drawn = (
        moments.unit.mean(axis=1), unit_draws(scoring, name, moments.unit[:, None], seed, _replicates(scoring))
    )  # fmt: skip
    truth = values[:, None] + _normal_vectors(moments.covariance)
    return {
        "values": values, "draws": drawn, "truth_draws": truth, "item_draws": drawn, "shared_draws": None,
        "mcse": np.zeros(len(values)),
    }  # fmt: skip


def _means(scoring: Scoring, name: str) -> Float[np.ndarray, "system unit"]:
    per_unit = PerUnit(scoring, name)
    fold(scoring, per_unit)
    return per_unit.mean


def _replicates(scoring: Scoring) -> int:
    return scoring.num_draws if scoring.num_draws > 1 else REPLICATES


def _normal_vectors(covariance: Float[np.ndarray, "system system"]) -> Float[np.ndarray, "system vector"]:
    """Draw normal vectors of a covariance, always the same ones; systems that are alike get the same numbers."""
    variance = np.diag(covariance)
    apart = variance[:, None] + variance[None] - 2 * covariance
    alike = (apart <= 1e-12 * (variance[:, None] + variance[None])).argmax(axis=1)  # the first that is alike
    value, vector = np.linalg.eigh(covariance)
    root = vector * np.sqrt(np.maximum(value, 0.0))
    normal = np.random.default_rng(0).standard_normal((len(covariance), _VECTORS))
    return (root @ normal)[alike]
