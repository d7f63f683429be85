"""Which members the battery runs over, and what takes them long."""

import pytest

from tests.laws.subjects import DEGENERATE, ITEMS, RECORDS, subject_of

# What takes ten seconds and more: laws that quicker members hold in every run are left to the slow set for these.
LONG = {
    "test_data_at_the_edge": [
        "glad-a million classes", "mace-a million classes", "one-coin-a million classes",
        "mpa-an annotator who says one thing", "mpa-an unseen class",
        *(f"plackett-luce-{what}" for what in {*DEGENERATE} - {"one annotation", "an item without annotations"}),
        # Crowds by the same kernels: `dawid-skene` has these in every run.
        *(f"{name}-{what}" for name in ("one-coin", "mace") for what in ("one item", "an unseen class", "duplicates")),
    ],
    "test_the_density_under_transformations": ["plackett-luce", "mpa", "yes-no", "dawid-skene", "mace"],
    "test_gibbs_and_nuts_agree": ["mace", "one-coin", "plackett-luce", "mpa"],
    "test_simulated_data_can_be_fitted": ["plackett-luce", "mpa"],
    "test_exact_posterior_and_nuts_agree": ["normal-inverse-gamma"],
    "test_codes_and_the_order_of_reports_do_not_matter": ["one-coin-Annotations", "mace-Annotations"],
    "test_every_report_twice_can_be_fitted": ["one-coin-Annotations", "mace-Annotations"],
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of `LONG` as slow before the slow ones are left out."""
    long = {f"{test}[{name}]" for test, names in LONG.items() for name in names}
    for item in items:
        if item.name in long:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", params=[*ITEMS, *RECORDS])
def any_subject(request):
    """Return a member and its row."""
    return subject_of(request.param)


@pytest.fixture(scope="session", params=ITEMS)
def subject(request):
    """Return a member of items and their classes, and its row."""
    return subject_of(request.param)


@pytest.fixture(scope="session", params=RECORDS)
def record_subject(request):
    """Return a member that links records, and its row: the laws of items and their classes mean nothing to it."""
    return subject_of(request.param)
