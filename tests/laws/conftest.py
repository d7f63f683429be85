"""Which members the battery runs over, and what takes them long."""

import pytest

from tests.laws.subjects import ITEMS, RECORDS, subject_of

# What takes ten seconds and more: laws that quicker members hold in every run are left to the slow set for these.
LONG = {
    "test_data_at_the_edge": [
        "glad-a million classes", "mace-a million classes", "one-coin-a million classes",
        "plackett-luce-a million classes",
        "plackett-luce-duplicates", "plackett-luce-all tied", "mpa-an annotator who says one thing",
        "mpa-an unseen class", "plackett-luce-an annotator who says one thing", "plackett-luce-an unseen class",
    ],
    "test_the_density_under_transformations": ["plackett-luce", "mpa", "yes-no", "dawid-skene"],
    "test_gibbs_and_nuts_agree": ["mace", "plackett-luce", "mpa"],
    "test_simulated_data_can_be_fitted": ["plackett-luce", "mpa"],
    "test_exact_posterior_and_nuts_agree": ["normal-inverse-gamma"],
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
