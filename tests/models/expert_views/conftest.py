"""A small fit by hand: eight items of which two were never judged, four experts, two views of three clusters."""

import functools
from collections import namedtuple

import jax
import numpy as np
import pytest

from consilience.models.expert_views import MODEL, truth
from consilience.models.expert_views.posterior import finished
from consilience.models.expert_views.simulation import constraints_of
from consilience.models.interface import Account
from consilience.models.posterior import Draws

PAIRS = [(0, 1, 1), (0, 2, 0), (1, 3, 0), (2, 3, 1), (4, 5, 1), (0, 5, 0)]


class Fitted:
    """A fit without a run: of what an ascent ended with, or of draws ``(draw, …)`` by site.

    `known` is whether it has its priors, which a fit that was loaded may not have.
    """

    def __init__(self, found, data, *, num_draws=60, seed=0, priors=None, known=True, **settings):
        resolved = MODEL.resolve(data, priors, {"clusters": 3, "views": 2, **settings})
        self.data, self.resolved = data, resolved if known else resolved.replace(given=None)
        drawn = isinstance(found, dict)
        self.posterior = (
            Draws({site: values[None] for site, values in found.items()}) if drawn
            else finished(found._asdict(), resolved)
        )  # fmt: skip
        self.key, self.num_draws = jax.random.key(seed), num_draws

    @functools.cached_property
    def truth(self):
        return truth(self.posterior, self.resolved, key=self.key, num_draws=self.num_draws)

    def said(self, words=""):
        """Return the notes with some words."""
        account = Account(
            posterior=self.posterior, resolved=self.resolved, method="", make_truth=lambda: self.truth
        )
        return [note.words() for note in MODEL.says(account) if words in note.text]

    def table(self, name, **choice):
        return MODEL.table(name).make(self.posterior, self.resolved, self.truth, **choice)


@pytest.fixture(scope="session")
def fitted():
    return Fitted


@pytest.fixture(scope="session")
def constraints():
    """Return what four experts say of the same six pairs; the last two of eight items occur in none."""
    expert = np.repeat(np.arange(4), len(PAIRS))
    a, b, together = (np.tile(column, 4) for column in zip(*PAIRS, strict=True))
    together = np.where((expert >= 2) & (a == 0), 1 - together, together)
    named = {"experts": ["ann", "bob", "cat", "dan"], "items": [*"abcdefgh"], "features": ["height", "width"]}
    return constraints_of(expert, a, b, together, np.random.default_rng(0).normal(3, 2, (8, 2)), 4).replace(
        **{name: np.array(ids, object) for name, ids in named.items()}
    )


@pytest.fixture(scope="session")
def posterior(constraints):
    """Return what an ascent that is sure of little ended with: canonical, and no two probabilities the same."""
    random = np.random.default_rng(1)
    eta = random.dirichlet([0.5, 0.4, 0.3], (6, 2))
    eta = np.take_along_axis(eta, np.argsort(-eta.sum(axis=0), axis=1)[None], axis=2)
    feature = constraints.feature
    fields = dict(
        sensitivity=np.array([[30.0, 3.0], [12.0, 2.0], [11.0, 4.0], [2.0, 2.0]]),
        specificity=np.array([[20.0, 3.0], [15.0, 4.0], [10.0, 2.0], [2.0, 2.1]]), stick=np.array([[3.5, 2.5]]),
        view_probability=np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.05, 0.95]]),
        weight_mean=random.normal(size=(2, 3, 3)), weight_variance=random.uniform(0.1, 0.6, (2, 3, 3)),
        cluster_probability=eta, restart_bound=np.array([-20.0, -18.5, -18.6]),
        restart_view_probability=np.eye(2)[[[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 0]]],
        feature_mean=feature.mean(axis=0), feature_scale=feature.std(axis=0),
    )  # fmt: skip
    return namedtuple("Ended", fields)(**fields)


@pytest.fixture(scope="session")
def sites(constraints, posterior):
    """Return sixty draws that go with the posterior, by site, with the numbers of views and clusters shuffled in each.

    Beside them the same before they were shuffled.
    """
    random = np.random.default_rng(2)
    num = 60
    eta = np.random.default_rng(3).permuted(np.tile([0.97, 0.02, 0.01], (6, 2, 1)), axis=2)
    cluster = np.stack([[random.choice(3, num, p=eta[item, view]) for item in range(6)] for view in range(2)])
    clean = {
        "view_of_expert": (random.random((num, 4)) < [0.02, 0.1, 0.1, 0.99]).astype(np.int32),
        "sensitivity": random.beta(9, 2, (num, 4)), "specificity": random.beta(9, 2, (num, 4)),
        "stick": random.beta(3, 2, (num, 1)), "weight": random.normal(posterior.weight_mean, 0.2, (num, 2, 3, 3)),
        "cluster": np.moveaxis(cluster, 2, 0).astype(np.int8),
    }  # fmt: skip
    return shuffled(clean, random), clean


def shuffled(clean, random):
    """Exchange the numbers of views and clusters at random, in every draw its own way."""
    from consilience.models.expert_views.canonical import sticks, view_weights

    found = {name: values.copy() for name, values in clean.items()}
    weight = view_weights(clean["stick"])
    for draw in range(len(weight)):
        view = random.permutation(2)  # the old view at each place
        found["view_of_expert"][draw] = np.argsort(view)[clean["view_of_expert"][draw]]
        found["stick"][draw] = sticks(weight[draw, view])
        for place, old in enumerate(view):
            order = random.permutation(3)
            found["cluster"][draw, place] = np.argsort(order)[clean["cluster"][draw, old]]
            found["weight"][draw, place] = clean["weight"][draw, old][:, order]
    return found


@pytest.fixture
def shuffle():
    return shuffled
