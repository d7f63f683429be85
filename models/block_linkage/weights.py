"""What fields say of pairs of records: weights of agreement, one pair explained, and records that nothing can link.

A pair of records has log odds: those of the prior and, for each field, the logarithm of how much more probable its two
values are in one entity than apart (Fellegi and Sunter 1969, A Theory for Record Linkage, JASA 64, with the
probabilities m and u of an outcome among pairs of one entity and among all others). All logarithms are natural.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.errors import UnknownName, UnsupportedRequest, meant
from consilience.models.block_linkage.gibbs.sampler import wide_threshold
from consilience.models.block_linkage.join import join_rule, pair_log_odds, prior_log_odds
from consilience.models.block_linkage.keys import MOST_OF_KEY, Keys, entered_keys, unions
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.likelihoods import AUTO
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.linking import SLACK
from consilience.models.block_linkage.model import wide_parameters
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.similar import SimilarHitMiss, for_data
from consilience.models.block_linkage.starting import for_candidates, hyperparameters
from consilience.models.interface import Column, Measure, Table
from consilience.models.posterior import Posterior
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved

if TYPE_CHECKING:
    import pandas

_BLOCK = 1 << 16  # numbers at a time
_MOST_THRESHOLDS = 101
_KEY_SIZES = np.array([1, 2, 3, 4, 5, 6, 11, 31, 101, 301, MOST_OF_KEY + 1])
_ROUNDING = 1e-9  # of shares and of log odds


def learned(posterior: Posterior, resolved: Resolved) -> tuple[Parameters, Likelihood]:
    """Return the hyperparameters, of draws their means, and the likelihood under them.

    Of models that have no intensity and no shares of sizes, these are the rough ones that candidates are found with.

    Raises
    ------
    UnsupportedRequest : the fit was loaded, and its likelihood was one of the user's own, which no file holds.
    """
    data = resolved.data
    if "probability" in posterior.hidden:
        parameters = Linkage.of(posterior).all_parameters()
    else:
        draws, (share, distortion) = posterior.draws(), hyperparameters(posterior, data)
        given = ("intensity", "size_share", "class_share", "source_share")
        mean = {name: np.asarray(draws[name], float).mean(axis=0) for name in given if name in draws}
        parameters = wide_parameters(data)._replace(value_share=share, distortion=distortion, **mean)
    return parameters, likelihood_of(posterior, parameters, resolved.settings, data).at(parameters)


def likelihood_of(posterior: Posterior, parameters: Parameters, settings: Any, data: Any) -> Likelihood:
    """Return the likelihood of a fit for some records, with its weights; where none was asked for, the one taken."""
    asked = settings.as_dict().get("likelihood", "hit-miss")
    taken = "error-classes" if isinstance(asked, str) and asked == AUTO and len(parameters.class_share) else asked
    found, powers = for_data(taken, data, parameters.value_share), posterior.hidden.get("powers", ())
    return found.weighted(powers) if len(powers) else found


def weights(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return what each outcome of each field says, on the average over its values, and how often pairs show it.

    ``links`` and ``others`` are counted: the shares of the expected links, and of all other pairs of records that the
    restriction allows, that show the outcome. ``m`` and ``u`` are what the model takes these for, and ``weight`` is
    their ``ln(m / u)``. All four add up to one over the outcomes of a field. To the model a field is missing by chance:
    that says nothing. It learns shares of values from all records, those of one entity among them, and knows of no
    value that no record has: of a field that tells nearly all entities apart, its u is above ``others``. Where errors
    come together (error classes), weights do not add up to the log odds of a pair.

    Raises
    ------
    UnsupportedRequest : see `learned`.
    """
    data: Records = resolved.data
    parameters, likelihood = learned(posterior, resolved)
    alone = parameters.value_share * np.exp(likelihood.log_alone(parameters.distortion, np))
    near = np.zeros((0, 2), int) if data.near is None else np.asarray(data.near)
    similar = np.zeros(data.num_fields, bool) if data.similar is None else np.asarray(data.similar)
    counts = _counts(data, resolved.settings.as_dict().get("restriction", "none"), truth.pairs())
    rows: list[tuple[int, str, float, float, float, float]] = []
    for field, (first, last) in enumerate(zip(data.first_value, data.first_value[1:], strict=False)):
        every, own = np.arange(first, last), near[(near[:, 0] >= first) & (near[:, 0] < last)].T
        equal = _shares(field, every, every, alone, parameters, likelihood)
        close = _shares(field, own[0], own[1], alone, parameters, likelihood)
        close *= 2  # a near pair has two orders
        counted = counts[field] / np.maximum(counts[field].sum(axis=0), np.finfo(float).tiny)
        lacks = counts[field, -1].sum() / max(counts[field].sum(), 1)  # the model knows of one share, of all pairs
        taken = {"equal": equal, "near": close, "differ": np.maximum(1 - equal - close, 0)}
        taken = {name: (1 - lacks) * of_model for name, of_model in taken.items()} | {"missing": np.full(2, lacks)}
        for seen, (name, of_model) in zip(counted, taken.items(), strict=True):
            if name != "near" or similar[field]:
                rows.append((field, name, *of_model, *seen))
    of_field, outcome, *shares = zip(*rows, strict=True)
    m, u, links, others = (np.where(np.array(of_row) > _ROUNDING, of_row, 0.0) for of_row in shares)
    weight = np.where(np.equal(outcome, "missing"), 0.0, np.nan)
    seen = (m > 0) & (u > 0)
    weight[seen] = np.log(m[seen] / u[seen])
    return {
        "field": np.array(of_field), "outcome": np.array(outcome, object), "m": m, "u": u, "weight": weight,
        "links": links, "others": others,
    }  # fmt: skip


def _counts(data: Records, restriction: str, pairs: Any) -> Float[np.ndarray, "field 4 2"]:
    """Count the pairs that are equal, near, different and missing in each field: expected links, and the others."""
    value, source = np.asarray(data.value), np.asarray(data.source)
    near = np.zeros((0, 2), int) if data.near is None else np.asarray(data.near)
    width = int(data.first_value[-1])
    close = np.sort(near.min(axis=1) * width + near.max(axis=1)) if len(near) else np.zeros(0, int)

    def products(one: np.ndarray, other: np.ndarray) -> Any:
        """Of numbers ``(file, …)`` of records, return those of the pairs of one and another that may be links."""
        every, within = one.sum(axis=0) * other.sum(axis=0), (one * other).sum(axis=0)
        return {"none": every, "across": every - within, "within": within}[restriction]

    counts = np.zeros((data.num_fields, 4, 2))
    for field, (first, last) in enumerate(zip(data.first_value, data.first_value[1:], strict=False)):
        own, number = value[field], int(last - first)
        has = own >= 0
        of_value = np.zeros((data.num_sources, number))
        np.add.at(of_value, (source[has], own[has]), 1)
        records = np.bincount(source, minlength=data.num_sources).astype(float)
        present = of_value.sum(axis=1)
        # Two orders of each pair, and of the records with themselves the one order that is no pair.
        itself = np.array([has.sum(), len(own)]) * (restriction != "across")
        a, b = (near[(near[:, 0] >= first) & (near[:, 0] < last)] - first).T
        equal = (products(of_value, of_value).sum() - itself[0]) / 2
        alike = products(of_value[:, a], of_value[:, b]).sum()
        both = (products(present, present) - itself[0]) / 2
        every = (products(records, records) - itself[1]) / 2
        total = np.array([equal, alike, both - equal - alike, every - both])
        one, other = own[pairs.first], own[pairs.second]
        low, high = np.minimum(one, other) + int(first), np.maximum(one, other) + int(first)
        is_close = np.isin(low.astype(np.int64) * width + high, close)
        kind = np.select([np.minimum(one, other) < 0, one == other, is_close], [3, 0, 1], 2)
        counts[field, :, 0] = np.bincount(kind, pairs.probability, 4)
        counts[field, :, 1] = np.maximum(total - counts[field, :, 0], 0)
    return counts


def _shares(
    field: int, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"], alone: Float[np.ndarray, " value"],
    parameters: Parameters, likelihood: Likelihood,
) -> Float[np.ndarray, " 2"]:  # fmt: skip
    """Return how probable it is that a pair shows some of these pairs of values, of one entity and of two."""
    together = apart = 0.0
    number = len(parameters.distortion)
    for rows in row_blocks(len(one), 2 * number, _BLOCK):
        values = np.full((2, number, len(one[rows])), -1)
        values[:, field] = one[rows], other[rows]
        by_chance = alone[one[rows]] * alone[other[rows]]
        together += float(by_chance @ np.exp(likelihood.log_pairs(values, parameters)))
        apart += float(by_chance.sum())
    return np.array([together, apart])


def explain(fit: Any, a: Any, b: Any) -> pandas.DataFrame:
    """Say term by term why two records are one entity or not.

    Parameters
    ----------
    fit : a fit of block-linkage.
    a, b : ids of two records.

    Returns
    -------
    data frame : a row for the prior and one for each field, with ``value_a`` and ``value_b``, the ``outcome`` (equal,
        near, differ, missing), the ``log_odds`` that it adds (natural logarithm), and the running ``sum`` with its
        ``probability``. Up to there it is the pair by itself. ``m`` and ``u`` are how probably a second record has the
        value of the first, or another one where they differ, if it is of the same entity and if it is not: what is
        added is ln(m / u), and they are NaN where it is something else. A row ``fields together`` follows where the
        likelihood is no sum of fields. The last row is the ``posterior``: what the other records, the restriction and
        labels add, and what comes out. The posterior of a pair that was no candidate, or was cut, is zero.

    Raises
    ------
    UnknownName : there is no such record.
    UnsupportedRequest : a record is compared with itself; or see `learned`.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("block-linkage", cs.simulate_records(40, seed=1))
    >>> table = fit.explain("r7", "r24")
    >>> table["term"].tolist()[:2], table["term"].tolist()[-1]
    (['prior', 'field_1'], 'posterior')
    """
    import pandas

    data: Records = fit.data
    one, other = sorted(_place(data, record) for record in (a, b))
    if one == other:
        raise UnsupportedRequest(f"the record {a!r} is compared with itself; give two records")
    parameters, likelihood = learned(fit.posterior, fit.resolved)
    codes = value_codes(data.value[:, [one, other]], data.first_value).T
    values = np.where(np.eye(data.num_fields, dtype=bool), codes[:, :, None], -1)
    terms = likelihood.log_pairs(values, parameters)
    whole = pair_log_odds(
        data.value, np.array([one]), np.array([other]), parameters, likelihood, data.first_value
    ).log_odds[0]
    texts = np.append(np.arange(data.num_values) if data.values is None else np.asarray(data.values, object), [""])
    names = np.arange(data.num_fields) if data.fields is None else data.fields
    none = (np.nan, np.nan)
    shares = _second_values(codes, terms, parameters, likelihood)
    rows = [("prior", "", "", "", *none, prior_log_odds(parameters))]
    for field, name in enumerate(names):
        outcome = _outcome(data, *codes[:, field].tolist())
        rows.append((name, *texts[codes[:, field]], outcome, *shares[:, field], terms[field]))
    if abs(rest := whole - rows[0][-1] - terms.sum()) > _ROUNDING:
        rows.append(("fields together", "", "", "", *none, rest))
    probability = fit.truth.pairs().of(np.array([one]), np.array([other]))[0]
    with np.errstate(divide="ignore"):
        rows.append(("posterior", "", "", "", *none, logit(min(probability, 1.0)) - whole))
    table = pandas.DataFrame(rows, columns=["term", "value_a", "value_b", "outcome", "m", "u", "log_odds"])
    table["sum"] = np.cumsum(table["log_odds"])
    table["probability"] = expit(table["sum"])
    return table


def _second_values(
    codes: Int[np.ndarray, "2 field"], terms: Float[np.ndarray, " field"], parameters: Parameters,
    likelihood: Likelihood,
) -> Float[np.ndarray, "2 field"]:  # fmt: skip
    """Return how probably a second record has the value of the first, or another where they differ, together and apart.

    Parameters
    ----------
    codes : the values of the two records, as places among those of all fields, -1 where missing.
    terms : what each field adds to the log odds; NaN is returned where that is not the logarithm of the quotient.
    parameters, likelihood : see `learned`.
    """
    alone = parameters.value_share * np.exp(likelihood.log_alone(parameters.distortion, np))
    first = np.where(np.eye(codes.shape[1], dtype=bool), codes[0, :, None], -1)
    apart = np.where(codes.min(axis=0) < 0, np.nan, alone[codes[0]])
    together = apart * np.exp(likelihood.log_pairs(np.stack([first, first]), parameters))
    shares = np.stack([together, apart])
    shares = np.where(codes[0] == codes[1], shares, 1 - shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.abs(np.log(shares[0] / shares[1]) - terms) < _ROUNDING**0.5
    return np.where(fits, shares, np.nan)


def _place(data: Records, record: Any) -> int:
    """Return the code of a record."""
    names = [str(name) for name in (range(data.num_records) if data.records is None else data.records)]
    if str(record) in names:
        return names.index(str(record))
    hint = meant(str(record), names)
    raise UnknownName(f"there is no record {record!r}" + (hint and f"; {hint}"))


def _outcome(data: Records, one: int, other: int) -> str:
    """Say how two values compare, given as places among the values of all fields."""
    if min(one, other) < 0:
        return "missing"
    if one == other:
        return "equal"
    near = data.near is not None and (np.asarray(data.near) == [min(one, other), max(one, other)]).all(axis=1).any()
    return "near" if near else "differ"


def unlinkable(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return which share of the records would not even be linked with a copy of themselves.

    ``threshold`` is in log odds. A record whose odds with an exact copy stay below shows too little: its values are
    missing or common. Thresholds are whole numbers, as many as the records reach.

    Raises
    ------
    UnsupportedRequest : see `learned`.
    """
    data: Records = resolved.data
    parameters, likelihood = learned(posterior, resolved)
    record = np.arange(data.num_records)
    own = np.sort(pair_log_odds(data.value, record, record, parameters, likelihood, data.first_value).log_odds)
    low, high = np.floor(own[0]), np.ceil(own[-1])
    threshold = np.unique(np.round(np.linspace(low, high, min(int(high - low) + 1, _MOST_THRESHOLDS))))
    return {"threshold": threshold, "share": np.searchsorted(own, threshold) / len(own)}


def candidates(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return how candidates were found: keys by how many records share them, and the pairs that these make.

    A key is a set of fields with values that is enough for a pair. Pairs that share several keys are counted for each.
    Keys of more than 1,000 records make no pairs: their records enter longer ones, which are not counted here. The last
    row tells the largest key.

    Raises
    ------
    UnsupportedRequest : candidates were given, or are found in another way, as those of fields that are compared by
        similarity are; or see `learned`.
    """
    data: Records = resolved.data
    parameters, likelihood = learned(posterior, resolved)
    if data.candidate is not None or isinstance(likelihood, SimilarHitMiss):
        how = "that were given" if data.candidate is not None else "of fields that are compared by similarity"
        raise UnsupportedRequest(f"candidates {how} have no keys; look at pairs()")
    given = resolved.settings.as_dict()
    threshold = given["threshold"] + SLACK
    if "wide" in given and "cluster" in posterior.sites:
        threshold = wide_threshold(data, given["wide"])
    rule = join_rule(data, for_candidates(parameters), likelihood, threshold=threshold)
    keys, value = Keys.of(rule, data.first_value), np.asarray(data.value)
    lacks, sizes = rule.lacking(value), [np.zeros(0, int)]
    for lacking in unions(lacks):
        own = value[:, (lacks & ~np.int16(lacking)) == 0]
        sizes.append(np.unique(entered_keys(own, keys, lacking)[1], return_counts=True)[1])
    size = np.concatenate(sizes)
    place = np.searchsorted(_KEY_SIZES, size, side="right") - 1
    has = np.unique(place)
    joined = np.where(size > MOST_OF_KEY, 0, size * (size - 1) // 2)
    return {
        "records": _KEY_SIZES[has], "up_to": np.array([size[place == one].max() for one in has.tolist()], int),
        "keys": np.bincount(place, minlength=len(_KEY_SIZES))[has],
        "pairs": np.bincount(place, joined, len(_KEY_SIZES))[has].astype(int),
    }  # fmt: skip


WEIGHTS = Table(
    name="weights", help="What it says that a field is equal, near, different or missing in two records.",
    columns=(
        Column("field", "field"), Column("outcome", help="equal, near, differ or missing"),
        Column("m", help="its share of links, as the model takes it"),
        Column("u", help="its share of other pairs, as the model takes it"),
        Column("weight", help="log odds that it adds on average, ln(m / u)"),
        Column("links", help="its share of the expected links, counted"),
        Column("others", help="its share of all other pairs of records, counted"),
    ),
    make=weights,
)  # fmt: skip
UNLINKABLE = Table(
    name="unlinkable", help="Which share of the records would not even be linked with a copy of themselves.",
    columns=(Column("threshold", help="log odds"), Column("share", help="of the records whose odds stay below")),
    make=unlinkable,
)
CANDIDATES = Table(
    name="candidates", help="How candidates were found: keys by how many records share them, and their pairs.",
    columns=(
        Column("records", help="of a key, from so many"), Column("up_to", help="to so many, the most that there are"),
        Column("keys", help="how many there are"), Column("pairs", help="that they make, counted for each key"),
    ),
    make=candidates,
)  # fmt: skip
EXPLAIN = Measure(
    name="explain", help="Why two records are one entity or not: the prior, each field, and the posterior.",
    place=f"{__name__}:explain",
)
