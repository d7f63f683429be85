"""How much higher or lower than the others annotators rate, by least squares."""

from __future__ import annotations

import numpy as np

_STILL = 1e-12


def annotator_offsets(item: np.ndarray, annotator: np.ndarray, rating: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return the offset of each annotator, shape ``(annotator,)``: a rating is that of its item and this, and an error.

    The effects of items are eliminated, and what is left for the annotators is solved by conjugate gradients, which
    begin at 0 and never leave the space of differences: offsets of annotators whom common items connect add up to 0.

    Parameters
    ----------
    item, annotator, rating : shape ``(rating,)``; two codes, and a number.
    size : how many items and annotators there are.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import LinearOperator, cg

    num_items, num_annotators = size
    rated = csr_array((np.ones(len(rating)), (annotator, item)), shape=(num_annotators, num_items))
    of_item = np.maximum(np.bincount(item, minlength=num_items), 1)
    of_annotator = np.bincount(annotator, minlength=num_annotators)

    def beside_others(offset: np.ndarray) -> np.ndarray:
        return of_annotator * np.ravel(offset) - rated @ (rated.T @ np.ravel(offset) / of_item)

    mean = np.bincount(item, rating, num_items) / of_item
    above = np.bincount(annotator, rating - mean[item], num_annotators)
    normal = LinearOperator((num_annotators, num_annotators), matvec=beside_others, dtype=float)
    # What is less than the rounding of the sums is nothing, and may lie outside the space of differences.
    least = _STILL * float(np.linalg.norm(np.bincount(annotator, np.abs(rating), num_annotators)))
    return cg(normal, above, rtol=_STILL, atol=least, maxiter=10 * num_annotators)[0]
