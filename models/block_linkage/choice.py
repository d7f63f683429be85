"""Which likelihood records are linked by, where none is asked for: hit-miss, or error classes if the data say so.

Hit-miss is fitted by EM. Where linked records differ as it predicts, with a `misfit` below `SMALL`, nothing else is
tried: what error classes can gain lies in the number of fields that differ. Else both are compared on some of the
components, and error classes are taken, and learned on the whole sample of EM, where they have the smaller disagreement
*and* the higher log evidence, by `LEAST_GAIN` for each expected link. Neither is tried where fewer links are expected
than a disagreement can be told from, nor with fields that are compared by similarity, which error classes do not know.

Why so much is asked of them: their three classes follow nearly any distribution of the number of fields that differ, so
that a small disagreement, and some gain in evidence, say little. Of simulated lists they gained .55 to .75 a link, and
found the right number of entities, where every duplicate had one error; .2 to .3 where people moved, and .03 to .1
where fields erred independently and often, and there the number was as wrong as by hit-miss, but no longer told to be.
A list in between stays with hit-miss and its warning. Where error classes are taken, the fit says what the number would
be by hit-miss.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from consilience.arrays import Float
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, HitMiss
from consilience.models.block_linkage.misfit import LEAST_LINKS
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.sites import Resolved

SMALL = 0.05
"""A disagreement below which hit-miss is taken as it is."""

LEAST_GAIN = 0.4
"""What error classes have to gain in log evidence for each expected link."""


_NUM_COMPONENTS, _MOST_PASSES = 1000, 12  # of the comparison


def better_of(em: Any, learned: Any, resolved: Resolved) -> tuple[Any, Any, Float[np.ndarray, "tried 3"]]:
    """Return the EM that fits better, and what it learned.

    Parameters
    ----------
    em, learned : EM under hit-miss, and its parameters, `Misfit` and trace.
    resolved : as EM took it.

    Returns
    -------
    em, learned : these, or those of error classes.
    tried : of hit-miss and of error classes the log evidence and the disagreement, of the components that were
        compared, and the expected number of entities; nothing where only hit-miss was tried.
    """
    parameters, check, _ = learned
    if check.seen.sum() < LEAST_LINKS or check.disagreement < SMALL or type(em.likelihood) is not HitMiss:
        return em, learned, np.zeros((0, 3))
    other = LIKELIHOODS["error-classes"]
    of_classes = em._replace(
        likelihood=other, prior=Hyperprior.of(resolved.replace(given=other.priors(resolved.given))),
        sample=em.sample._replace(blocks=[block._replace(candidates=None) for block in em.sample.blocks]),
    )  # fmt: skip
    _, evidence, disagreement = _compared(em, parameters)
    started, own_evidence, own_disagreement = _compared(of_classes, other.started(parameters))
    links = em.sample.scale * check.seen.sum()
    better = own_evidence - evidence > LEAST_GAIN * links and own_disagreement < disagreement
    found = of_classes.run(started) if better else (started,)
    tried = [
        (evidence, disagreement, em.statistics(parameters).sizes.sum()),
        (own_evidence, own_disagreement, of_classes.statistics(found[0]).sizes.sum()),
    ]
    return (of_classes, found, np.array(tried)) if better else (em, learned, np.array(tried))


def _compared(em: Any, parameters: Any) -> tuple[Any, float, float]:
    """Return what is learned from some of the components, with the log evidence and the disagreement on them."""
    some = thinned(em, _NUM_COMPONENTS)
    learned, evidence = some.phase(parameters, complete=False, most=_MOST_PASSES)
    return learned, evidence[-1], some.check(learned, some.statistics(learned)).disagreement


def thinned(em: Any, most: int) -> Any:
    """Return EM on so many of its components, or somewhat fewer."""
    number = sum(block.values.shape[-1] for block in em.sample.blocks)
    step = max(-(-number // most), 1)
    blocks = [jax.tree.map(lambda array: array[..., ::step], block) for block in em.sample.blocks]
    kept = sum(block.values.shape[-1] for block in blocks)
    return em._replace(sample=em.sample._replace(blocks=blocks, scale=em.sample.scale * number / max(kept, 1)))
