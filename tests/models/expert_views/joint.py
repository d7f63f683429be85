"""The log joint density of all sites and answers, from counts of answers: what the NumPyro density is compared with."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.models.expert_views.likelihood import (
    answer_table,
    answering,
    log_likelihood,
    log_view_weight,
    own_view,
)
from consilience.models.expert_views.model import _logits, arranged
from consilience.models.expert_views.priors import weight_prior


def log_joint(values, resolved):
    """Return the log joint density of answers and all sites, by counts of answers as the sampler has them.

    Parameters
    ----------
    values : of all sites, the discrete ones too.
    """
    resolved = arranged(resolved)
    judged, given, views = resolved.data, resolved.given, resolved.size("view")
    cluster, view = jnp.asarray(values["cluster"]).T, jnp.asarray(values["view_of_expert"])
    same = (cluster[judged.first] == cluster[judged.second])[judged.answer_pair]  # (answer, view)
    counts = jnp.einsum("ae,av,ak->evk", np.eye(judged.num_experts)[judged.answer_expert], same, judged.said)
    total = own_view(log_likelihood(counts, answering(values, resolved), judged.number)[..., None], view).sum()
    log_share = jax.nn.log_softmax(_logits(given, values["weight"], judged))
    total += jnp.take_along_axis(log_share, cluster.T[..., None], axis=-1).sum()
    if views > 1:
        total += log_view_weight(jnp.log(values["stick"]), jnp.log1p(-values["stick"]))[view].sum()
        total += dist.Beta(1.0, given.concentration).log_prob(values["stick"]).sum()
    for site in answer_table(resolved).sites:
        # The expert is the last axis of a prior, and the first of the site.
        prior, value = resolved.prior(site), jnp.asarray(values[site])
        total += prior.log_prob(jnp.moveaxis(value, 0, value.ndim - 1 - prior.event_dim)).sum()
    return total + weight_prior(resolved, judged.feature.shape[1]).log_prob(values["weight"]).sum()
