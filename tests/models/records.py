"""Records from codes of their values, for tests of linkage."""

import itertools

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from consilience.data import Records, read_records
from consilience.models.block_linkage.enumeration import set_partitions
from consilience.models.block_linkage.gibbs.problem import wide_pairs
from consilience.models.truth.partitions import first_members, pairs_together


def records_of(value, sizes=None, *, source=None, **more):
    """Return records.

    Parameters
    ----------
    value : shape ``(field, record)``; codes within each field, -1 where missing.
    sizes : how many values each field has; those that are there by default.
    source : of each record; all of one by default.
    more : ids and entities, as `Records` takes them.
    """
    value = np.asarray(value, np.int32)
    sizes = value.max(axis=1, initial=-1) + 1 if sizes is None else np.asarray(sizes)
    source = np.zeros(value.shape[1], np.int32) if source is None else np.asarray(source, np.int32)
    return Records(
        value=value, source=source, first_value=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        num_records=value.shape[1], num_fields=len(value), num_sources=int(source.max(initial=0)) + 1,
        num_values=int(np.sum(sizes)), **more,
    )  # fmt: skip


def german_names(folder):
    """Read RLdata500: five fields of 500 records, of which 50 are duplicates."""
    fields = ["fname_c1", "lname_c1", "by", "bm", "bd"]
    path = folder / "rldata" / "RLdata500.csv"
    return read_records(path, id="rec_id", entity="ent_id", fields=fields, missing_values=("NA",))


def pair_scores(posterior, entity):
    """Return precision and recall of the pairs of the most probable partition of EM."""
    found = right = 0
    for group in posterior.groups():
        labels = set_partitions(group.members.shape[1])[group.partition.argmax(axis=1)]
        same = np.triu(labels[:, :, None] == labels[:, None], 1)
        own = entity[group.members]
        found += same.sum()
        right += (same & (own[:, :, None] == own[:, None])).sum()
    number = np.bincount(entity)
    return right / found, right / (number * (number - 1) // 2).sum()


def linked_in(records, threshold):
    """Return clusters of the true pairs in the wide graph, and how many true pairs are not in it."""
    number = records.num_records
    pairs = wide_pairs(records, threshold=threshold)
    same = records.entity[pairs.first] == records.entity[pairs.second]
    graph = coo_array((np.ones(same.sum()), (pairs.first[same], pairs.second[same])), shape=(number, number))
    total = len(pairs_together(np.asarray(records.entity)))
    return first_members(connected_components(graph, directed=False)[1]), total - int(same.sum())


# ---- what models say, from their definitions ----


def log_sum_over_partitions(log_cluster, terms):
    """Return the log of the sum over all partitions of the products of their clusters, relative to records alone.

    Parameters
    ----------
    log_cluster : of every subset, numbered by the bits of its members.
    terms : of clusters of 0, 1, 2, … records.
    """
    number = len(log_cluster).bit_length() - 1
    labels, bits = set_partitions(number), 1 << np.arange(number)
    total = np.zeros(len(labels))
    for cluster in range(number):
        own = labels == cluster
        total += np.where(own.sum(axis=1) > 1, log_cluster[own @ bits] + terms[own.sum(axis=1)], 0)
    return np.logaddexp.reduce(total)


def probability_of_classes(codes, *, field, share, distortion, class_share):
    """Return the probability of the records of an entity: the sum over the head and the classes of the others."""
    whole = 0.0
    for place, head in enumerate(codes):
        one = np.prod(share[head[head >= 0]]) / len(codes)
        for record in np.delete(codes, place, axis=0):
            one *= np.dot(class_share, given_head(record, head, field, share, distortion))
        whole += one
    return whole


def given_head(record, head, field, share, distortion):
    """Return the probability of a record given the head and each class."""
    apart = np.prod([share[code] for code, true in zip(record, head, strict=True) if true < 0 <= code])
    both = [column for column in range(len(head)) if min(record[column], head[column]) >= 0]
    one = 0.0
    for wrong in range(len(head)):
        term = 1 / len(head)
        for column in both:
            shown, true = record[column], head[column]
            others = (field == column) & (np.arange(len(field)) != true)
            of_error = share[shown] / share[others].sum() if others[shown] else 0.0
            term *= of_error if column == wrong else float(shown == true)
        one += term
    exact = float(all(record[column] == head[column] for column in both))
    many = np.prod([
        (1 - distortion[column]) * (record[column] == head[column]) + distortion[column] * share[record[column]]
        for column in both
    ])  # fmt: skip
    return apart * np.array([exact, one, many])


def assignments(data, concentration, number):
    """Return all assignments of records to so many Dirichlet entities, and the log probability of each and of the data.

    Parameters
    ----------
    concentration : of each value of all fields.
    """
    first, value = np.asarray(data.first_value), np.asarray(data.value)
    every, terms = [*itertools.product(range(number), repeat=data.num_records)], []
    for z in every:
        total = -data.num_records * np.log(number)
        for k, f in itertools.product(set(z), range(data.num_fields)):
            prior = concentration[first[f] : first[f + 1]]
            codes = value[f][np.array(z) == k]
            count = np.bincount(codes[codes >= 0], minlength=len(prior))
            total += (gammaln(prior + count) - gammaln(prior)).sum()
            total -= gammaln(prior.sum() + count.sum()) - gammaln(prior.sum()) if len(prior) else 0
        terms.append(total)
    return np.array(every), np.array(terms)
