"""A private series in plain sentences."""

import math
from typing import TYPE_CHECKING

from cloakwork._checks import rounded_up
from cloakwork.privacy import Explanation
from cloakwork.series.mechanisms import Least
from cloakwork.series.strategies import CausalStrategy

if TYPE_CHECKING:
    from cloakwork.series.cloak import SeriesCloak

_NOTICED = 1e-5


def explain(cloak: "SeriesCloak") -> Explanation:
    """Say what a release of a series hides and costs."""
    return Explanation(_hidden(cloak), _not_hidden(cloak), _cost(cloak), _drivers(cloak))


def _hidden(cloak: "SeriesCloak") -> tuple[str, ...]:
    places = "" if cloak.series == 1 else f" in all {cloak.series} series together"
    if 0 < cloak.touched < cloak.n * cloak.series:
        places = f", at {cloak.touched} of them at the most" + places
    return (
        f"Someone who sees everything that is published cannot tell well whether a change of up to "
        f"{cloak.contribution:g} was made to the values{places}: any event they wait for is at most "
        f"e^{cloak.epsilon:g} = {rounded_up(math.exp(min(cloak.epsilon, 700)), 3)} times likelier with "
        "it than without, plus "
        f"{cloak.delta:g}.",
        "If each event adds at most that much, single events are hidden (event level); if all that one person adds "
        "stays below it, persons are (user level).",
    )


def _not_hidden(cloak: "SeriesCloak") -> tuple[str, ...]:
    return (
        f"The {cloak.n} times, the filters and the error bands are public, and so is that something was published.",
        f"A change of k times {cloak.contribution:g} moves what is released k times as far: someone who adds more than "
        "the stated contribution is hidden less.",
        "Publishing the same values again, or another view of the same events, adds up: each release spends its own "
        "(epsilon, delta).",
    )


def _cost(cloak: "SeriesCloak") -> tuple[str, ...]:
    found, ideal = math.sqrt(cloak.expected_mse), math.sqrt(cloak.ideal_mse)
    each = zip(cloak.filters, cloak.expected_mses.tolist(), strict=True)
    lines = [] if cloak.single else [f"{one.name} is off by {math.sqrt(mse):.4g}." for one, mse in each]
    lines += [
        f"{'Values' if cloak.single else 'All'} are off by {found:.4g} (root mean square); unrounded, by {ideal:.4g}: "
        f"whole numbers cost {percent(cloak.rounding_cost)} of the mean squared error.",
        f"The formula of the paper on private convolution gives {math.sqrt(cloak.papers_mse):.4g}.",
    ]
    if cloak.touched:
        lines.append(
            f"Values are rounded to multiples of {cloak.step:g}, which may move {cloak.touched} of them to another: "
            f"the noise covers {cloak.units * cloak.step:.4g} instead of {cloak.contribution:g}."
        )
    return tuple(lines)


def percent(share: float) -> str:
    """A share in words; one that nobody would notice as what it is less than.

    >>> percent(0.00037), percent(4e-9)
    ('0.037 %', 'less than 0.001 %')
    """
    return f"{100 * share:.2g} %" if share >= _NOTICED else f"less than {100 * _NOTICED:g} %"


def _drivers(cloak: "SeriesCloak") -> tuple[str, ...]:
    edges = (
        "The series is taken as a circle: its last value is followed by its first."
        if cloak.circular
        else "Before the first value and after the last there is nothing; averages near an end are over what there is."
    )
    return (
        f"{_mechanism(cloak)}: {cloak.strategy.length:,} whole numbers are released, each with noise of "
        f"its own; all that is published follows from them.",
        edges,
    )


def _mechanism(cloak: "SeriesCloak") -> str:
    """The mechanism, and not that it was the better of two."""
    if isinstance(cloak.mechanism, Least):
        return "SquareRoot" if isinstance(cloak.strategy, CausalStrategy) else "Fourier"
    return type(cloak.mechanism).__name__
