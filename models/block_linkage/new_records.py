"""New records beside a fit: what they are linked with, the hyperparameters fixed at what was learned.

Candidates of the fitted and the new records are joined under the learned hyperparameters, and parts are made of all of
them, as a fit of all would. Those that hold a new record are inferred; the others are what they were.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.linking import linked_under, parts_under
from consilience.models.block_linkage.truth import BlockPartition
from consilience.models.block_linkage.weights import learned, likelihood_of
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved


def linked_beside(
    posterior: Posterior, resolved: Resolved, records: Records
) -> tuple[BlockPartition, Int[np.ndarray, " touched"]]:
    """Infer the parts that hold a new record.

    Parameters
    ----------
    posterior, resolved : of the fit.
    records : the fitted records and, after them, the new ones; the values of a field that were never seen come after
        those that were.

    Returns
    -------
    partition : of the records of these parts.
    touched : their codes, increasing.

    Raises
    ------
    UnsupportedRequest : the fit is by another model; or its candidates were given, so that none are known of new
        records.
    """
    fitted: Records = resolved.data
    if "likelihood" not in resolved.settings.as_dict():
        raise UnsupportedRequest("only fits by block-linkage take new records; link by it, or link all records again")
    if fitted.candidate is not None:
        text = "the pairs that may be linked were given, and say nothing of new records; link all records again"
        raise UnsupportedRequest(text)
    own, _ = learned(posterior, resolved)
    parameters = own._replace(value_share=_extended_shares(fitted, own.value_share, records.first_value))
    closed = not np.isnan(posterior.hidden.get("closure", np.nan))
    settings = dataclasses.replace(resolved.settings, decision="closure" if closed else "posterior")
    likelihood = likelihood_of(posterior, parameters, settings, records)
    part = parts_under(records, parameters, likelihood, settings)
    holds_new = np.zeros(records.num_records, bool)
    holds_new[part[fitted.num_records :]] = True
    touched = np.flatnonzero(holds_new[part])
    linkage = linked_under(_some(records, holds_new[part]), parameters, likelihood, settings)
    names = None if records.records is None else np.asarray(records.records)[touched]
    return BlockPartition(linkage, key=jax.random.key(0), num_draws=1, records=names), touched


def _extended_shares(
    fitted: Records, share: Float[np.ndarray, " value"], first_value: Int[np.ndarray, " fields_and_one"]
) -> Float[np.ndarray, " more_values"]:
    """Return how common values are where some were never seen: as half a record of those that have the field.

    Parameters
    ----------
    share : of the values of the fitted records.
    first_value : where the values of each field begin, new ones after those that were known.
    """
    parts = []
    for field, known in enumerate(np.split(share, fitted.first_value[1:-1])):
        number = max(int(np.count_nonzero(np.asarray(fitted.value[field]) >= 0)), 1)
        more = int(first_value[field + 1] - first_value[field]) - len(known)
        parts += [known, np.full(more, 0.5 / number)]
    return np.concatenate(parts)


def _some(records: Records, chosen: Bool[np.ndarray, " record"]) -> Records:
    """Return some of the records, with the labels of pairs among them."""
    place, labelled, log_odds = np.cumsum(chosen) - 1, records.labelled, records.label_log_odds
    if labelled is not None:
        inside = chosen[labelled].all(axis=1)
        labelled, log_odds = place[labelled[inside]].astype(np.int32), log_odds[inside]
        labelled, log_odds = (labelled, log_odds) if len(labelled) else (None, None)
    return records.replace(
        value=np.asarray(records.value)[:, chosen], source=np.asarray(records.source)[chosen],
        num_records=int(chosen.sum()), entity=None, entities=None, labelled=labelled, label_log_odds=log_odds,
        records=None if records.records is None else np.asarray(records.records)[chosen],
    )  # fmt: skip
