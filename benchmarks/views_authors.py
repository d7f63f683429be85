"""The authors' program of clustering views (Chang et al. 2017), run on the same answers: Python 2, in a subprocess.

It needs a checkout of theirs, and a Python 2 interpreter with numpy, scipy, autograd and scikit-learn. What it prints
as its bound is none (its prior of the views drops factors), so that its results are scored by ours: the pruned bound at
its weights and its views of the experts, with the cluster probabilities that it ties to the mean weights.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Float, Int
from consilience.data import Constraints
from consilience.models.expert_views import MODEL, PAPER_PRIORS
from consilience.models.expert_views.bound import pruned_bound
from consilience.models.expert_views.cavi import CAVI
from consilience.models.expert_views.problem import Problem, Q
from consilience.models.expert_views.updates import agreement, logits, update_tilt

RECORDED = (
    "Not run here (`--authors CHECKOUT --python2 INTERPRETER`). On data of the same size their program took 2.2 to 3.3 "
    "CPU seconds for a start that stopped early, as 17 of 20 did, and 21 to 28 for one that did not. That was another "
    "run, on another machine."
)
"""What is said where their program is not at hand."""

_TILTS = 20

# What the other interpreter runs: each start of theirs from its own random weights, with the settings of their test.
_PROGRAM = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import numpy
from autograd import grad
from minConf_PQN import minConf_PQN
from objective import NegELBO
from utils import initParam, projectParam, unpackParam
given = numpy.load(sys.argv[2])
X, S, counts = given["X"], given["S"], [int(one) for one in given["counts"]]
G, K, starts = [int(given[name]) for name in ("G", "K", "starts")]
(N, D), M = X.shape, len(counts)
prior = dict(mu_w=0, sigma_w=1, mu_b=0, sigma_b=1, tau_a1=10, tau_a2=1, tau_b1=10, tau_b2=1, gamma=1)
options = dict(optTol=1e-3, progTol=1e-6, maxIter=200, verbose=0)
value = lambda param: NegELBO(param, prior, X, S, counts, G, M, K)
slope = grad(value)
found = dict(phi=[], mean=[], sd=[], seconds=[], evaluations=[])
sys.stdout = open(os.devnull, "w")
for start in range(starts):
    first = initParam(prior, X, N, D, G, M, K, 1, numpy.random.RandomState(1000 + start))
    began = time.clock()
    param, _, evaluations = minConf_PQN(
        lambda param: (value(param), slope(param)), first,
        lambda param: projectParam(param, N, D, G, M, K, lb=1e-12), options=options)
    found["seconds"].append(time.clock() - began)
    found["evaluations"].append(evaluations)
    parts = unpackParam(param, N, D, G, M, K)
    found["phi"].append(parts[4])
    found["mean"].append(numpy.concatenate([parts[7], parts[9][:, None]], axis=1))
    found["sd"].append(numpy.concatenate([parts[8], parts[10][:, None]], axis=1))
numpy.savez(sys.argv[3], **dict((name, numpy.array(values)) for name, values in found.items()))
"""


class Starts(NamedTuple):
    """What their program ended with, start by start.

    Parameters
    ----------
    phi : probabilities of the views of the experts.
    mean, sd : of the weights; the offsets are the last feature.
    seconds : CPU seconds of each start.
    evaluations : of the objective.
    """

    phi: Float[np.ndarray, "start expert view"]
    mean: Float[np.ndarray, "start view column cluster"]
    sd: Float[np.ndarray, "start view column cluster"]
    seconds: Float[np.ndarray, " start"]
    evaluations: np.ndarray


def run_authors(
    data: Constraints, checkout: Path, interpreter: str, *, clusters: int, views: int, starts: int = 20
) -> Starts:
    """Run their program; answers are sorted by expert, features standardised."""
    answers = np.stack([data.expert, data.item_a, data.item_b, data.together], axis=1).astype(np.int64)
    with tempfile.TemporaryDirectory() as folder:
        given, taken = Path(folder) / "given.npz", Path(folder) / "taken.npz"
        np.savez(given, X=data.feature, S=answers, counts=np.bincount(data.expert), G=views, K=clusters, starts=starts)
        command = [interpreter, "-c", _PROGRAM, str(checkout), str(given), str(taken)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        with np.load(taken) as found:
            return Starts(*(found[name] for name in Starts._fields))


def scored(data: Constraints, found: Starts) -> tuple[Float[np.ndarray, " start"], Int[np.ndarray, "start view item"]]:
    """Return our pruned bound of each of their starts, and the labels that its mean weights give all items."""
    number, num_experts, views = found.phi.shape
    with jax.enable_x64(True):
        chosen = {"clusters": found.mean.shape[-1], "views": views, "restarts": number}
        problem = CAVI.prepare(MODEL.resolve(data, PAPER_PRIORS, chosen))
        # Accuracies and sticks are the best ones given the rest, whatever they are here.
        phi = jnp.asarray(found.phi)
        mean, variance = jnp.asarray(found.mean), jnp.maximum(jnp.asarray(found.sd) ** 2, 1e-12)
        eta = jax.nn.softmax(jnp.einsum("nd,rgdk->nrgk", problem.feature, mean), axis=-1)
        q = Q(
            eta=eta, tilt=jnp.zeros_like(logits(mean, problem)), weight_mean=mean, weight_variance=variance,
            phi=phi / phi.sum(axis=-1, keepdims=True),
            accuracy=jnp.ones((number, num_experts, 1, 2, 2)), stick=jnp.ones((number, views - 1, 2)),
        )  # fmt: skip
        bound = _bound(q, problem)
    inputs = np.concatenate([data.feature, np.ones((data.num_items, 1))], axis=1)
    return np.asarray(bound), np.einsum("nd,rgdk->rgnk", inputs, found.mean).argmax(axis=-1)


@jax.jit
def _bound(q: Q, problem: Problem) -> jax.Array:
    q = jax.lax.fori_loop(0, _TILTS, lambda _, q: update_tilt(q, problem), q)
    return pruned_bound(q, agreement(q.eta, problem), problem)
