"""The claim of `cloakwork series`: a cloak, or in the words of the command line why there is none."""

import math
from collections.abc import Sequence

from cloakwork._checks import rounded_down
from cloakwork.cli.series_given import Given, SeriesOptions
from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy import SERVER_TABLES
from cloakwork.series import Filter, SeriesCloak

_PADDED = 4  # times as many numbers as the series has are drawn, at the most


def cloak_of(given: Given, filters: Sequence[Filter], options: SeriesOptions) -> SeriesCloak:
    """A cloak for what was given, that meets the claim."""
    try:
        return given.series.cloak(list(filters), epsilon=options.epsilon, delta=options.delta)
    except CalibrationError as problem:
        said = _said(problem, given, options)
        if said is None:
            raise
        raise InputError(said) from None


def _said(problem: CalibrationError, given: Given, options: SeriesOptions) -> str | None:
    most = problem.values.get("most")
    if isinstance(most, float):
        return _too_much(most, given, options)
    return _too_fine(given, options) if "epsilon" in problem.values else None


def _too_much(most: float, given: Given, options: SeriesOptions) -> str:
    """Why there is no noise that large, and what to give instead."""
    claim = f"--epsilon {options.epsilon:g} and --delta {options.delta:g}"
    step = given.series.step
    if not given.bound or most < (step or 1.0):
        return f"{claim} need more noise than can be drawn: give larger ones."
    limit = f"{math.floor(most):,}" if step is None else f"{rounded_down(most, 3)}, in steps of {step:g}"
    coarser = ", a larger --step" if options.value else ""
    return (
        f"{given.bound}: one may change {given.series.contribution:g} in all, and the most that can be hidden at "
        f"{claim} is {limit}. Give a smaller {given.bound}{coarser} or a larger --epsilon."
    )


def _too_fine(given: Given, options: SeriesOptions) -> str:
    """Why there is no noise that exact, and what to give instead."""
    room = options.delta / (2 * SERVER_TABLES.error * _PADDED * given.series.values.size)
    smaller = f"--epsilon {rounded_down(math.log(room), 3)} or less, or " if room > math.e else ""
    return (
        f"--epsilon {options.epsilon:g} with --delta {options.delta:g}: the noise cannot be drawn as exactly as that "
        f"needs. Give {smaller}a larger --delta."
    )
