"""How much a plan leaves to see: of a lone source in a frame, in a window and over a long time."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import rounded_down, rounded_up, spread_of
from cloakwork.accuracy import Limits, bayes_risk, limits
from cloakwork.cli.output import say, table
from cloakwork.physics import Drift, FloorPlan, Physics
from cloakwork.privacy import Cloak, NoiseLaw, Profile, Scope
from cloakwork.recovery import Problem, detection_probability, samples_locally
from cloakwork.site import Schedule, Site, clock_ms

FOUND = 0.999  # once a source is found this often, more readings are not simulated
HORIZONS = (
    ("an hour", 3_600),
    ("eight hours", 28_800),
    ("a day", 86_400),
    ("a week", 604_800),
    ("a year", 31_557_600),
)


@dataclass(frozen=True)
class CostOfDrift:
    """How often a frame alone detects a lone source, and the least mean distance that a window alone allows."""

    noticed: float
    average_emd: float | None


def cost_of_drift(site: Site, cloak: Cloak) -> CostOfDrift:
    """Limits for a lone source from one frame and from one window, with unknown offsets."""
    bounds = window_limits(cloak, site.drift)
    return CostOfDrift(share_detected(cloak, site.drift), None if bounds is None else bounds.average_emd)


def drift_sentences(site: Site, cloak: Cloak, bounds: Limits | None) -> list[str]:
    """The cost of drift, and a note on one that is faster than the readings; nothing for a site without drift."""
    if site.drift is None:
        return []
    cost, unit = cost_of_drift(site, cloak), f" {unit_of_length(cloak.physics)}".rstrip()
    alone = f"detects a lone source in {100 * cost.noticed:.0f} % of cases"
    alone += f" instead of {100 * share_detected(cloak):.0f} %"
    if bounds is not None and cost.average_emd is not None:
        alone += (
            f", and a window alone locates it no better than to {rounded_down(cost.average_emd, 2)}{unit} on average "
            f"instead of {rounded_down(bounds.average_emd, 2)}{unit}"
        )
    follow = "" if site.not_followed else " Following sources learns the offsets and costs less: --sweep simulates it."
    sentences = [f"Where readings drift as stated, a frame alone {alone}. The claim does not change.{follow}"]
    fastest, period = min(site.drift.on(cloak.physics).over), site.period_ms / 1000
    if fastest < period:
        sentences.append(
            f"Note: a drift over {duration(fastest)} is faster than the readings, {duration(period)} apart: a frame "
            "says little about the offsets of the next."
        )
    return sentences


def share_detected(cloak: Cloak, drift: Drift | None = None) -> float:
    """The share of frames in which a lone unit source at a typical place is detected at all."""
    offsets = None if drift is None else drift.on(cloak.physics)
    return float(
        np.median(
            detection_probability(Problem.with_noise(cloak.physics, cloak.total_sigmas, cloak.roundings, offsets))
        )
    )


def window_limits(cloak: Cloak, drift: Drift | None = None) -> Limits | None:
    """The limits of any method for a whole window; none for one place, for a large floor, and for Laplace noise."""
    if cloak.physics.places < 2 or samples_locally(cloak.physics) or cloak.noise is NoiseLaw.LAPLACE:
        return None
    return limits(cloak.physics, cloak.claimed_sigmas / np.sqrt(cloak.readings_per_window), drift=drift)


def unit_of_length(physics: Physics) -> str:
    """The unit of distances; empty if unknown."""
    return "m" if isinstance(physics, FloorPlan) else ""


def duration(seconds: float) -> str:
    """A duration in its largest whole unit."""
    if seconds < 1:
        return f"{1000 * seconds:g} ms"
    for unit, size in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"


@dataclass(frozen=True)
class OverTime:
    """The most readings of a sensor in a span of time, and how much all of them together reveal.

    `right_place` and `mean_distance` are what the best method reaches against a lone source that stays: it names the
    right place at most this often, and its mean distance is at least this. `std` is the least standard deviation along
    an axis of an unbiased method at a typical place. None if there is only one place. `stay` is the epsilon for a
    source that stays all that time, at the delta of the claim for stays; None without one. `together` is the epsilon of
    all sensors of the site, where the claim is about one; None if it is about all.
    """

    time: str
    readings: int
    epsilon: float
    right_place: float | None
    mean_distance: float | None
    std: float | None
    stay: float | None = None
    together: float | None = None


def seen_sensors(cloak: Cloak) -> str:
    """The sensors that the observer of the claim sees."""
    return "all sensors" if cloak.scope is Scope.NETWORK else "one sensor"


def over_time(site: Site, cloak: Cloak, schedule: Schedule, bounds: Limits | None) -> list[OverTime]:
    """Rows on all readings of a window, and of an hour, eight hours, a day, a week and a year if these are longer."""
    window = site.spec.privacy.window
    right, mean, std = (bounds.right_place, bounds.average_emd, bounds.typical_std) if bounds else (None, None, None)
    within = cloak.readings_per_window
    spans: list[OverTime] = []
    longer = [(name, schedule.most(clock_ms(seconds))) for name, seconds in HORIZONS if seconds > window]
    for name, readings in [(duration(window), within), *longer]:
        worth = cloak.stay_worth(readings)
        if right is not None and worth != within:
            found = right >= FOUND and spans
            risk = None if found else bayes_risk(cloak.physics, cloak.claimed_sigmas, readings=math.ceil(worth))
            right, mean = (risk.right_place, risk.mean_distance) if risk else (1.0, 0.0)
        epsilon = cloak.compose(readings).epsilon(cloak.delta)
        less = None if std is None else std * math.sqrt(within / worth)
        stay, together = _stay(cloak, readings), _together(cloak, readings)
        spans.append(OverTime(name, readings, epsilon if spans else cloak.epsilon, right, mean, less, stay, together))
    return spans


def _together(cloak: Cloak, readings: int) -> float | None:
    if cloak.scope is Scope.NETWORK:
        return None
    return cloak.compose(readings * cloak.observers).epsilon(cloak.delta)


def _stay(cloak: Cloak, readings: int) -> float | None:
    return (
        None if cloak.stay is None else Profile(cloak.stay_mu(readings), cloak.family.doubt).epsilon(cloak.stay.delta)
    )


def print_over_time(cloak: Cloak, over: list[OverTime]) -> None:
    """Print what an observer who keeps every reading learns in each span of time."""
    unit = f" {unit_of_length(cloak.physics)}".rstrip()
    all_columns = {
        "over": [span.time for span in over],
        "readings of a sensor": [f"{span.readings:,}" for span in over],
        "epsilon" if cloak.scope is Scope.NETWORK else f"epsilon of {seen_sensors(cloak)}": [
            rounded_up(span.epsilon, 3) for span in over
        ],
        "of all sensors": [rounded_up(span.together, 3) for span in over if span.together is not None],
        "of a stay": [rounded_up(span.stay, 3) for span in over if span.stay is not None],
        "right place, at most": [
            f"{rounded_up(100 * span.right_place, 3)} %" for span in over if span.right_place is not None
        ],
        "mean distance, at least": [
            f"{rounded_down(span.mean_distance, 2)}{unit}" for span in over if span.mean_distance is not None
        ],
        "std": [f"{span.std:.2g}{unit}" for span in over if span.std is not None],
    }
    columns = {head: cells for head, cells in all_columns.items() if cells}
    title = f"An observer who keeps every reading (delta {cloak.delta:g})"
    table(title, list(columns), list(zip(*columns.values(), strict=True)))
    if over[0].right_place is None:
        say("(An epsilon above about 10 hides nothing in practice. How soon a source is found is not computed.)\n")
        return
    if cloak.stay is not None:
        say(
            "('epsilon' is for sources that may move in each frame; 'of a stay' is for one that stays in its place all "
            f"that time, at delta {cloak.stay.delta:g}. Without the slow offsets, the two would be equal.)\n"
        )
    say(
        "(An epsilon above about 10 hides nothing in practice. The last columns are what the best method "
        "reaches with all sensors against a lone source that stays where it is: how often it names the right one of "
        f"{cloak.physics.places:,} places, and how far off it is; std is the standard deviation "
        "along an axis of the best unbiased estimate at a typical place (Cramer-Rao). Someone who knows its "
        "habits does better.)\n"
    )


def stay_rows(cloak: Cloak, unit: str) -> list[tuple[str, str]]:
    """The claim for stays, the slow offsets, and their cost for a frame and for the mean of a window."""
    if cloak.stay is None or cloak.slow is None or cloak.offsets is None:
        return []
    deviations = cloak.slow.deviations(cloak.steps)
    share, within = float((deviations / cloak.sigmas).max()) ** 2, cloak.readings_per_window
    return [
        (
            f"claim for a stay of {cloak.stay.readings:,} readings (epsilon, delta)",
            f"({cloak.stay.epsilon:g}, {cloak.stay.delta:g})",
        ),
        ("slow offset of a sensor", spread_of(deviations) + unit),
        ("time constant of the offsets", f"{cloak.offsets.over[0] / 3600:.2g} hours"),
        (
            "variance with the offsets",
            f"{1 + share:.3g} times for one reading, {1 + within * share:.3g} times for a window's mean",
        ),
    ]


def stay_values(cloak: Cloak) -> dict[str, object] | None:
    """The claim for stays and its offsets as plain values."""
    if cloak.stay is None or cloak.slow is None or cloak.offsets is None:
        return None
    return {
        **{key: getattr(cloak.stay, key) for key in ("readings", "epsilon", "delta", "period")},
        "mu": cloak.stay_mu(cloak.stay.readings),
        "deviations": cloak.slow.deviations(cloak.steps).tolist(),
        "time_constant": float(cloak.offsets.over[0]),
        "renew": cloak.slow.renew,
    }
