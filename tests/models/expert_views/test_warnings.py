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


def test_few_round_trips_are_said_where_ladders_do_not_agree(sites, constraints, fitted):
    drawn = fitted({site: values.copy() for site, values in sites[0].items()}, constraints)
    drawn.posterior.hidden["ladder_trips"] = np.array([1, 2])
    assert not drawn.said("the tempered chains exchanged")
    drawn.posterior.chains["view_of_expert"][0, :30, 1] = 1 - drawn.posterior.chains["view_of_expert"][0, :30, 0]
    (found,) = drawn.said("the tempered chains exchanged")
    assert "exchanged 3 times between free and full answers, and ladders differ by 0." in found
    drawn.posterior.hidden["ladder_trips"] = np.array([10, 2])
    assert not drawn.said("the tempered chains exchanged")
    drawn.posterior.hidden["ladder_trips"] = np.array([0])
    assert "between free and full answers; groupings" in drawn.said("the tempered chains exchanged")[0]
