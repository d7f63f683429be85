"""What a fit says of itself: restarts that disagree, and answers that told nothing."""

import numpy as np

DISAGREE, NOTHING = "with another grouping of the experts", "told nothing of the clusters"
WHOLE = "every item is in one cluster, as experts who guess make it"


def test_close_restarts_with_another_grouping(constraints, posterior, fitted):
    # The best one has experts 0, 1, 2 together; so has the last, under other numbers. The first splits them.
    found = fitted(posterior, constraints).said(DISAGREE)
    assert len(found) == 1
    assert found[0].startswith("1 restart with")
    assert "in 2 views, comes as near as 1.5 nats" in found[0]
    far = posterior._replace(restart_bound=np.array([-30.0, -18.5, -18.6]))
    assert not fitted(far, constraints).said(DISAGREE)


def test_answers_that_told_nothing(constraints, posterior, fitted):
    assert not fitted(posterior, constraints).said(NOTHING)
    flat = posterior._replace(cluster_probability=np.full((6, 2, 3), 1 / 3))
    assert len(fitted(flat, constraints).said(NOTHING)) == 1
    assert not fitted(flat, constraints).said(WHOLE)


def test_a_view_whose_items_are_all_in_one_cluster(constraints, posterior, fitted):
    assert not fitted(posterior, constraints).said(WHOLE)
    probability = posterior.cluster_probability.copy()
    probability[:, 1] = [0.98, 0.01, 0.01]
    found = fitted(posterior._replace(cluster_probability=probability), constraints).said(WHOLE)
    assert len(found) == 1
    assert found[0].startswith("in view 1 every item")
    probability[:, 0] = [0.01, 0.98, 0.01]
    both = fitted(posterior._replace(cluster_probability=probability), constraints).said(WHOLE)
    assert both[0].startswith("in views 0, 1 every item")
