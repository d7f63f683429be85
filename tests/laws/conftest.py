"""Which members the battery runs over: the registry, and members in files that are not registered."""

import pytest

from consilience import models
from tests.laws.cases import CASES, RECORD_CASES
from tests.loading import load

# Name in CASES -> file with a MODEL, relative to the repository, of members that are not in the registry.
OTHERS: dict[str, str] = {"yes-no": "docs/skeleton_member.py", "glad": "docs/glad_member.py"}


# What takes ten seconds and more: laws that quicker members hold in every run are left to the slow set for these.
LONG = {
    "test_degenerate_data[glad-a million classes]",
    "test_the_density_under_transformations[glad]",
    "test_models_fits_and_data_are_copied_and_pickled[glad]",
    "test_gibbs_and_nuts_agree[mace]",
    "test_gibbs_and_nuts_agree[plackett-luce]",
    "test_degenerate_data[mace-a million classes]",
    "test_degenerate_data[plackett-luce-a million classes]",
    "test_degenerate_data[plackett-luce-duplicates]",
    "test_degenerate_data[plackett-luce-all tied]",
    "test_the_density_under_transformations[plackett-luce]",
    "test_the_density_under_transformations[mpa]",
    "test_the_density_under_transformations[yes-no]",
    "test_simulated_data_can_be_fitted[plackett-luce]",
    "test_gibbs_and_nuts_agree[mpa]",
    "test_exact_posterior_and_nuts_agree[normal-inverse-gamma]",
    "test_degenerate_data[mpa-an annotator who says one thing]",
    "test_degenerate_data[mpa-an unseen class]",
    "test_degenerate_data[plackett-luce-an annotator who says one thing]",
    "test_degenerate_data[plackett-luce-an unseen class]",
    "test_the_density_under_transformations[dawid-skene]",
    "test_simulated_data_can_be_fitted[mpa]",
    "test_simulated_records_can_be_fitted[hit-miss]",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of `LONG` as slow before the slow ones are left out."""
    for item in items:
        if item.name in LONG:
            item.add_marker(pytest.mark.slow)


def member_of(name):
    return models.member(name) if name not in OTHERS else load(OTHERS[name]).MODEL


RECORDS = [name for name in models.names() if models.place(name).takes == ("Records",)]
# Of constraints the truth is several partitions at once: `test_symmetries` and their member's own tests hold its laws.
NAMES = [name for name in models.names() if models.place(name).takes[0] not in ("Records", "Constraints")]


@pytest.fixture(scope="session", params=[*NAMES, *OTHERS])
def subject(request):
    """Return a member and its row."""
    if request.param not in CASES:
        pytest.fail(f"'{request.param}' has no row in tests/laws/cases.py")
    return member_of(request.param), CASES[request.param]


@pytest.fixture(scope="session", params=RECORDS)
def record_subject(request):
    """Return a member that links records, and its row: the laws of items and their classes mean nothing to it."""
    if request.param not in RECORD_CASES:
        pytest.fail(f"'{request.param}' has no row in RECORD_CASES of tests/laws/cases.py")
    return member_of(request.param), RECORD_CASES[request.param]
