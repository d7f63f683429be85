"""The options of a fit as they were given, where comparing several fits chose the value of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consilience.inference.result import Fit
    from consilience.models.sites import Resolved

_GIVEN = "given_"


def write_given(resolved: Resolved, chosen: Fit) -> None:
    """Write into the attributes of the fit that was chosen what was given for the options in which it differs.

    Parameters
    ----------
    resolved : what was asked for, with options that no single fit has, such as a word.
    chosen : one of the fits that were compared.
    """
    given = resolved.settings.as_dict()
    chosen.attributes.update({
        f"{_GIVEN}{name}": value for name, value in given.items() if value != chosen.options[name]
    })  # fmt: skip


def given_options(fit: Fit) -> dict[str, Any]:
    """Return the options of a fit, each as it was given."""
    return {name: fit.attributes.get(f"{_GIVEN}{name}", value) for name, value in fit.options.items()}


def is_given(attribute: str) -> bool:
    """Return whether an attribute holds what was given for an option."""
    return attribute.startswith(_GIVEN)
