r"""Which items are most worth another label: by how much one more annotation is expected to make them more certain.

With :math:`r_{it}` the posterior probability that t is the label of item i, and :math:`\bar\Theta_{tl}` that of one
more annotator, taken in proportion to how much each annotates, giving label l to an item of label t, the certainty is
:math:`\max_t r_{it}` now, :math:`\sum_l \max_t r_{it} \bar\Theta_{tl}` is expected of it after one more label, and the
difference is what an independent label would gain. Annotators who err together tell less than that: the gain is
:math:`\gamma_i = 1 / (1 + (n_i - 1) \rho)` of it, what one of the item's :math:`n_i` annotations is worth. On sets
with gold labels that was .65 to .8 of what the next label did where items had two to six labels, and 1.5 times that
where they had eight (``python -m benchmarks another_label``). It is zero where no label that may come in could change
which label leads, as for items that are certain, and wherever annotators say the same whatever is true.

It is a look one step ahead: two more labels can gain where one cannot, and what the new label would tell about the
annotators, and through them about other items, is not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.models.truth import CLASSES, truth_of
from consilience.models.truth.classes import UNKNOWN_ERRORS, marginals, most_probable


def next_labels(fit: Any, limit: int | None = None) -> Any:
    """Tabulate the items by how much one more annotation is expected to add to their certainty, most first.

    Parameters
    ----------
    fit : Fit
        A fit of a model of annotators, such as dawid-skene, mace or mpa; or its `Truth`.
    limit : int, optional
        How many rows; by default all items but those that have a gold label in the data of the fit, which need no
        other. A truth alone knows of no gold labels.

    Returns
    -------
    pandas.DataFrame
        With the columns ``item``, ``label`` (the most probable one), ``certainty`` (its probability), ``gain``
        (expected of one more annotation by an annotator of this crowd) and ``expected_certainty``, the sum of both. Of
        equal gains, the least certain items come first.

    Raises
    ------
    UnsupportedRequest
        Where the model does not say how annotators err, as majority vote and models of plausibilities do not.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"), draws=10)
    >>> cs.next_labels(fit, limit=1)[["item", "label"]].values.tolist()
    [['3', '2']]
    """
    import pandas

    if limit is not None and limit < 1:
        raise UnsupportedRequest(f"limit is {limit}; give how many items to list, 1 or more")
    truth: Any = truth_of(fit).read_as(CLASSES.name)
    if truth.crowd is None:
        raise UnsupportedRequest(UNKNOWN_ERRORS)
    gain = truth.crowd.gain(truth)
    label, certainty = most_probable(marginals(truth))
    gold = None if truth_of(fit) is fit else fit.data.gold_codes
    chosen = np.lexsort((certainty, -gain))
    chosen = (chosen if gold is None else chosen[np.asarray(gold)[chosen] < 0])[:limit]
    items, classes = truth.ids.get("item"), truth.ids.get("class")
    ids = np.arange(truth.num_units) if items is None else np.asarray(items, object)
    label = label[chosen]
    return pandas.DataFrame({
        "item": ids[chosen], "label": label if classes is None else np.asarray(classes, object)[label],
        "certainty": certainty[chosen], "gain": gain[chosen], "expected_certainty": certainty[chosen] + gain[chosen],
    })  # fmt: skip
