r"""Answers of a person to pairs of records, as factors of every partition that has the pair together.

An answer with the probability e of an error is :math:`(1 - e) / e` times as probable, or as improbable, where the pair
is one entity as where it is not. So its logarithm is added to the log weight of each cluster that holds the pair:
:math:`+\infty` and :math:`-\infty` for sure answers, of which the first forbids all clusters that hold one record only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.problems import first_of
from consilience.data.records import Records
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.models.block_linkage.enumeration import conflicts
from consilience.models.block_linkage.join import CandidatePairs, pair_log_odds
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters
from consilience.notes import Remedy


def label_log_odds(
    records: Records, first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, " pair"]:
    """Return what labels add to the log odds of pairs, zero for those without."""
    if records.labelled is None:
        return np.zeros(len(first))
    key = np.asarray(records.labelled, np.int64) @ [records.num_records, 1]
    wanted = first.astype(np.int64) * records.num_records + second
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.where(key[place] == wanted, np.asarray(records.label_log_odds)[place], 0.0)


def with_labels(
    found: CandidatePairs, records: Records, parameters: Parameters, likelihood: Likelihood
) -> CandidatePairs:
    """Return candidates with the pairs that have labels, and the log odds of all with what these add."""
    if records.labelled is None:
        return found
    one, other = np.asarray(records.labelled).T
    own = pair_log_odds(records.value, one, other, parameters, likelihood, records.first_value)
    key, labelled = (pairs.first.astype(np.int64) * records.num_records + pairs.second for pairs in (found, own))
    more = own.where(~np.isin(labelled, key))
    order = np.argsort(np.concatenate([key, labelled[~np.isin(labelled, key)]]))
    columns: Any = zip(found[:-1], more[:-1], strict=True)
    first, second, log_odds = (np.concatenate(both)[order] for both in columns)
    joined = CandidatePairs(first, second, log_odds, found.unseen)
    return joined._replace(log_odds=joined.log_odds + label_log_odds(records, joined.first, joined.second))


def check_labels(
    records: Records, restriction: str, largest: int, limit: str = "largest", *, closure: bool = False
) -> None:
    """Refuse sure answers that no partition has.

    Parameters
    ----------
    largest, limit : most records of an entity, and the setting that says so.
    closure : whether all that is connected becomes one entity, whatever is said of two ends.

    Raises
    ------
    InputError : they put records together that the restriction keeps apart.
    UnsupportedRequest : they put more records together than an entity may have; or the decision is a closure.
    """
    if records.labelled is None:
        return
    if closure:
        text = "labels of pairs are not taken by {decision}, which knows no records that are different; leave them out"
        raise UnsupportedRequest(text, Remedy("decision", "closure"))
    first, second = np.asarray(records.labelled)[np.asarray(records.label_log_odds) == np.inf].T
    number = records.num_records
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(number, number))
    part = connected_components(graph, directed=False)[1]
    size = np.bincount(part)
    source = np.asarray(records.source)
    sources = np.bincount(np.unique(part.astype(np.int64) * records.num_sources + source) // records.num_sources)
    wrong = {"none": size < 0, "across": sources < size, "within": sources > 1}[restriction]
    for chosen in np.flatnonzero(wrong):
        members = first_of(_names(records, part == chosen))
        where = "of one file, and" if restriction == "across" else "of several files, and"
        problem = f"labels say that {members} are the same, but they are {where} {{restriction}} keeps these apart"
        remedy = "correct the labels, or leave the restriction out"
        raise InputError(InputProblem(problem, remedy, remedies=(Remedy("restriction", restriction),)))
    if size.max(initial=0) > largest:
        members = first_of(_names(records, part == size.argmax()))
        raise UnsupportedRequest(
            f"labels put {size.max()} records into one entity ({members}), and {{{limit}}} is the most that one may "
            "have; raise it",
            Remedy(limit, largest),
        )


def _names(records: Records, chosen: Bool[np.ndarray, " record"]) -> list[str]:
    places = np.flatnonzero(chosen)
    return [str(name) for name in (places if records.records is None else np.asarray(records.records)[places])]


def refuse_labels(records: Records, taker: str) -> None:
    """Refuse records with labels.

    Parameters
    ----------
    taker : what does not take them, in words.

    Raises
    ------
    UnsupportedRequest : there are some.
    """
    if records.labelled is not None:
        raise UnsupportedRequest(f"labels of pairs are not taken by {taker}; leave them out, or link by {{method}}",
                                 Remedy("method", "em"))  # fmt: skip


def pair_terms_of(
    records: Records, members: Int[np.ndarray, "component member"], restriction: str
) -> Bool[Array, "member member component"] | Float[np.ndarray, "member member component"] | None:
    """Return which records of components may not be together, or, where pairs have labels, what is added for each pair.

    Parameters
    ----------
    restriction : as `conflicts` takes it; a pair that it keeps apart has minus infinity.
    """
    conflict = conflicts(records.source, members, restriction)
    if records.labelled is None or not members.size:
        return conflict
    place = np.argsort(members, axis=None)
    record = members.ravel()[place]
    found = np.minimum(np.searchsorted(record, records.labelled), len(record) - 1)
    component, member = np.divmod(place[found], members.shape[1])
    inside = (record[found] == records.labelled).all(axis=1) & (component[:, 0] == component[:, 1])
    if not inside.any():
        return conflict
    terms = np.zeros((members.shape[1], *members.T.shape))
    (one, other), of_label = member[inside].T, component[inside, 0]
    terms[one, other, of_label] = terms[other, one, of_label] = np.asarray(records.label_log_odds)[inside]
    return terms if conflict is None else np.where(conflict, -np.inf, terms)
