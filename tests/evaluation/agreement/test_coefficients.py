"""The table of coefficients, on Krippendorff's example of four coders and twelve units."""

import numpy as np
import pytest

from consilience.data.annotations import Annotations
from consilience.evaluation.agreement.coefficients import coefficients, percent_agreement
from consilience.evaluation.agreement.counts import LabelCounts

# Krippendorff's reliability data: one line a coder, one column a unit, 0 where a coder did not look.
CODERS = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
])  # fmt: skip


def annotations(coders):
    annotator, item = np.nonzero(coders)
    return Annotations.from_codes(item, annotator, coders[annotator, item] - 1, num_labels=5)


def rows(coders, **options):
    data = annotations(coders)
    return coefficients(LabelCounts.of_annotations(data), data, **options)


PRINTED = {
    ("percent agreement", ""): 9 / 11,
    ("kappa", "different items"): None,
    ("kappa", "different items, bias-reduced"): None,
    ("Fleiss' kappa", "pooled"): None,
    ("Fleiss' kappa", "item-mean"): 0.761169,
    ("Fleiss' kappa", "pairable"): None,
    ("Conger's kappa", ""): 0.762067,
    ("Gwet's AC1", ""): 0.775444,
    ("Krippendorff's alpha", "nominal"): 0.743421,
    ("Krippendorff's alpha", "ordinal"): 0.815388,
    ("Krippendorff's alpha", "interval"): 0.849107,
    ("Krippendorff's alpha", "ratio"): 0.797403,
}


def test_krippendorffs_example():
    estimates = rows(CODERS, values=np.arange(1.0, 6))
    assert [estimate[:2] for estimate in estimates] == list(PRINTED)
    for estimate in estimates:
        printed = PRINTED[estimate[:2]]
        assert printed is None or round(estimate.value, 6) == round(printed, 6)
        assert estimate.lower < estimate.value < estimate.upper <= 1
        if "bias-reduced" not in estimate.convention and estimate.name != "percent agreement":
            beyond = (estimate.observed - estimate.expected) / (1 - estimate.expected)
            assert estimate.value == pytest.approx(beyond)


def test_what_applies():
    names = [estimate[:2] for estimate in rows(CODERS)]
    assert names == [name for name in PRINTED if name[1] not in ("ordinal", "interval", "ratio")]
    assert ("Krippendorff's alpha", "ordinal") in [estimate[:2] for estimate in rows(CODERS, ordinal=True)]
    metrics = [estimate.convention for estimate in rows(CODERS, values=np.arange(-2.0, 3))][-3:]
    assert metrics == ["nominal", "ordinal", "interval"]
    counts = LabelCounts.of_annotations(annotations(CODERS))
    assert "Conger's kappa" not in [estimate.name for estimate in coefficients(counts)]
    table = np.bincount(counts.columns[0] * 5 + counts.columns[1], minlength=60).reshape(12, 5)
    from_counts = Annotations.from_counts(table)
    unnamed = coefficients(LabelCounts.of_annotations(from_counts), from_counts)
    for first, second in zip(unnamed, coefficients(counts), strict=True):
        np.testing.assert_array_equal(first[2:], second[2:])


def test_two_annotators_have_cohens_and_scotts():
    names = [estimate.name for estimate in rows(CODERS[1:3])]
    assert names[6:9] == ["Conger's kappa", "Cohen's kappa", "Scott's pi"]


def test_full_data_have_one_fleiss():
    full = CODERS[:, (CODERS > 0).all(0)]
    values = {estimate[:2]: estimate.value for estimate in rows(full)}
    fleiss = [value for (name, _), value in values.items() if name == "Fleiss' kappa"]
    np.testing.assert_allclose(fleiss, fleiss[0])
    first_two = {estimate.name: estimate for estimate in rows(full[:2])}
    np.testing.assert_allclose(first_two["Conger's kappa"][2:], first_two["Cohen's kappa"][2:])


def test_percent_agreement_has_wilsons_interval():
    everywhere = percent_agreement(LabelCounts.of_codes(np.repeat(np.arange(20), 2), np.zeros(40, int)))
    assert (everywhere.value, everywhere.sd, everywhere.upper) == (1, 0, 1)
    assert 0.7 < everywhere.lower < 0.9
    assert np.isnan(everywhere.expected)


def test_coefficients_of_items_with_one_annotation():
    alone = Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 0])
    for estimate in coefficients(LabelCounts.of_annotations(alone), alone, np.array([0.0, 1.0])):
        assert np.isnan([estimate.value, estimate.sd, estimate.lower, estimate.upper]).all()


def test_level():
    narrow, wide = (rows(CODERS, level=level, ordinal=True) for level in (0.5, 0.99))
    for inner, outer in zip(narrow, wide, strict=True):
        assert outer.lower < inner.lower
        assert inner.value == outer.value
