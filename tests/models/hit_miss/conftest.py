"""Records so few that all of their partitions can be gone through by hand."""

import itertools
import math
from collections import namedtuple

import numpy as np
import pytest

from consilience.models.block_linkage.enumeration import set_partitions
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.block_linkage.model import linkable
from consilience.models.hit_miss.priors import equal_sizes
from tests.models.records import records_of

Tiny = namedtuple("Tiny", "data records settings state partitions probability log_total")

VALUES = np.array([[0, 0, 1, 1, 2, 0], [0, 0, 0, 1, 1, -1], [2, 1, -1, 0, 1, 2]])
SOURCES = np.array([0, 1, 0, 1, 1, 0])
SHARE = np.array([0.5, 0.3, 0.2, 0.6, 0.4, 0.2, 0.3, 0.5])
DISTORTION = np.array([0.2, 0.1, 0.4])
SIZES, INTENSITY = np.array([0.6, 0.25, 0.1, 0.05]), 4.0


def with_components(data, components):
    """Return records that may be together in these components alone, instead of in one."""
    components = sorted(components, key=len)
    lengths = [len(one) for one in components]
    number = tuple(lengths.count(size) for size in range(2, max([2, *lengths]) + 1))
    return data.replace(
        member=np.array([record for one in components for record in one], np.int32), num_components=number,
        candidates=(None,) * len(set(lengths)),
    )  # fmt: skip


def marginal(values, share, distortion):
    """Return how probable the values of a field of one entity are: the sum over its true value."""
    return sum(
        own * math.prod((1 - distortion) * (value == true) + distortion * share[value] for value in values)
        for true, own in enumerate(share)
    )


def log_prior(sizes, prior, number):
    if prior == "labels":
        return math.lgamma(number + 1) - math.lgamma(number - len(sizes) + 1)  # N! / (N - k)!
    if prior == "partitions":
        return 0.0
    of_clusters = (math.log(INTENSITY * math.factorial(size) * SIZES[size - 1]) for size in sizes)
    return sum(of_clusters) - INTENSITY - math.lgamma(number + 1)


def allowed(labels, components, source, restriction, largest):
    for label in range(labels.max() + 1):
        own = np.flatnonzero(labels == label)
        if len(own) > largest or (len(own) > 1 and not any(set(own) <= set(one) for one in components)):
            return False
        files = len(set(source[own]))
        if (restriction == "across" and files < len(own)) or (restriction == "within" and files > 1):
            return False
    return True


@pytest.fixture
def tiny():
    """Return a function that makes six records, with the exact probabilities of their partitions."""

    def make(prior="labels", components=(tuple(range(6)),), restriction="none", largest=4):
        records = records_of(VALUES, source=SOURCES)
        data = with_components(linkable(records, restriction=restriction, largest=largest), components)
        first = records.first_value
        found, log_weight = [], []
        for labels in set_partitions(records.num_records):
            if not allowed(labels, components, SOURCES, restriction, largest):
                continue
            clusters = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
            total = log_prior([len(own) for own in clusters], prior, records.num_records)
            for own, field in itertools.product(clusters, range(records.num_fields)):
                values = [value for value in VALUES[field, own] if value >= 0]
                total += math.log(marginal(values, SHARE[first[field] : first[field + 1]], DISTORTION[field]))
            found.append((labels[:, None] == labels).argmax(axis=1))
            log_weight.append(total)
        log_weight = np.array(log_weight)
        log_total = np.logaddexp.reduce(log_weight)
        sizes, intensity = (SIZES, INTENSITY) if prior == "entities" else (equal_sizes(largest), 1.0)
        alone = np.arange(records.num_records, dtype=np.int32)
        state = State(alone, SHARE, DISTORTION, np.array(intensity), sizes[:largest])
        settings = {"prior": prior, "restriction": restriction, "largest": largest}
        return Tiny(data, records, settings, state, np.array(found), np.exp(log_weight - log_total), log_total)

    return make
