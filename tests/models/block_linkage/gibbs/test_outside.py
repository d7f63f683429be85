"""Links that the wide graph leaves out: as many as the model expects, and a warning where they matter."""

import numpy as np
import pytest

from consilience.models.block_linkage import simulate
from consilience.models.block_linkage.gibbs.outside import LinksOutside, links_outside, outside_warning
from consilience.models.block_linkage.model import linkable, members_by_size
from consilience.models.truth.partitions import first_members, pairs_together
from tests.models.records import linked_in


def draws_of(records, values, cluster):
    """Return one draw of what the records were drawn from."""
    return {
        "cluster": cluster[None], "value_share": values["value_share"][None], "distortion": values["distortion"][None],
        "intensity": np.array([len(np.unique(records.entity))]), "size_share": values["size_share"][None],
    }  # fmt: skip


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_as_many_as_there_are(missing):
    """Over several sets of records, with entities of two so that a link outside is no other way together."""
    expected, found = 0.0, 0
    for seed in range(6):
        records, values = simulate(
            seed, num_records=1200, num_values=(100, 80, 40, 12, 20), distortion=0.12, size_share=(0.7, 0.3),
            missing=missing,
        )  # fmt: skip
        cluster, outside = linked_in(records, 2.0)
        one = links_outside(draws_of(records, values, cluster), records, 2.0)
        assert 0 < one.share < 1
        expected, found = expected + one.number, found + outside
    assert found > 100
    # Both vary as Poisson counts do, the expected one because it follows the links that were found.
    assert abs(found - expected) < 5 * np.sqrt(found + expected)


def grouped_in(records, found):
    """Return clusters of the true pairs in the groups of candidates, and how many true pairs are not in one."""
    group = np.arange(records.num_records)
    for members in members_by_size(found):
        group[np.asarray(members)] = np.asarray(members)[:, :1]
    entity = np.asarray(records.entity)
    cluster = first_members(group * (entity.max() + 1) + entity)
    return cluster, len(pairs_together(entity)) - len(pairs_together(cluster))


@pytest.mark.parametrize(("threshold", "is_cut"), [(2.0, False), (6.0, True)])
def test_what_small_groups_leave_out(threshold, is_cut):
    """Pairs below the threshold, and those that were cut because groups are too large."""
    expected, cut, found = 0.0, 0.0, 0
    for seed in range(6):
        records, values = simulate(
            seed, num_records=1500, num_values=(200, 400, 80, 12, 28), distortion=0.05, size_share=(0.75, 0.19, 0.06)
        )
        components = linkable(records, threshold=threshold)
        cluster, outside = grouped_in(records, components)
        one = links_outside(draws_of(records, values, cluster), records, threshold, components=components)
        # Numbers of entities, which not every prior draws, are not looked at.
        without = {site: draws_of(records, values, cluster)[site] for site in ("cluster", "value_share", "distortion")}
        assert links_outside(without, records, threshold, components=components) == one
        expected, cut, found = expected + one.number, cut + components.cut[-1], found + outside
    assert (cut > 20) == is_cut
    assert abs(found - expected) < 3 * np.sqrt(found + expected)


def test_nobody_knows_of_candidates_that_were_given():
    records, values = simulate(0, num_records=40)
    records = records.with_candidates({"record_a": records.records[:1], "record_b": records.records[1:2]})
    found = links_outside(draws_of(records, values, np.arange(40)), records, 10.0)
    assert np.isnan(found).all()
    assert outside_warning(found, 0.0, 10.0) == []


def test_a_warning_where_it_matters():
    """Beyond a tenth of the standard deviation."""
    assert outside_warning(LinksOutside(0.5, 0.999), 6.0, 10.0) == []
    (warned,) = outside_warning(LinksOutside(0.7, 0.999), 6.0, 8.0)
    assert "expects 0.7 links among pairs that could not be linked" in warned.text
    assert "raise wide=, now 8" in warned.words()
