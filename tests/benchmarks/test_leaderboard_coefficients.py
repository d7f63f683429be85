import pytest

from benchmarks.leaderboard_coefficients import COEFFICIENTS, SETTINGS, Setting, coefficient_coverage, true_coefficient


def test_true_coefficients_by_hand():
    # With shares .95 and .05, P_e is .905; halfway to certainty P_a is .9525, and AC1 takes .095 for chance.
    rare = Setting(20, (0.95, 0.05), "Dirichlet", 1.0)
    assert true_coefficient(rare, "Fleiss' kappa", "pooled") == pytest.approx(0.5)
    assert true_coefficient(rare, "Krippendorff's alpha", "interval") == pytest.approx(0.5)
    assert true_coefficient(rare, "Gwet's AC1", "") == pytest.approx((0.9525 - 0.095) / 0.905)
    # Of easy items, .97 + .015 of the labels are of their class: P_a is .985² + .015² there, and .5 elsewhere.
    easy = Setting(20, (0.5, 0.5), "easy", 0.9)
    agree = 0.9 * (0.985**2 + 0.015**2) + 0.1 * 0.5
    assert true_coefficient(easy, "Fleiss' kappa", "pooled") == pytest.approx(2 * agree - 1)


def test_rows_of_a_simulation():
    rows = coefficient_coverage(SETTINGS[:1], sets=4)
    assert [row["coefficient"] for row in rows] == [f"{name} {variant}".strip() for name, variant in COEFFICIENTS]
    assert all(row["least width"] > 0 and row["covered"] >= 0.5 for row in rows)
