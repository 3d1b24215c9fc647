"""What the readings of a plan reveal over a long time, with and without slow offsets."""

import math
from dataclasses import asdict, dataclass

from cloakwork._checks import rounded_down, rounded_up, spread_of
from cloakwork.accuracy import Limits, bayes_risk
from cloakwork.cli.output import say, table
from cloakwork.cli.planned_accuracy import duration, unit_of_length
from cloakwork.cli.planned_bits import HORIZONS
from cloakwork.privacy import Cloak, Profile
from cloakwork.site import Schedule, Site, clock_ms

FOUND = 0.999  # once a source is found this often, more readings are not simulated


@dataclass(frozen=True)
class OverTime:
    """The most readings of a sensor in a span of time, and how much all of them together reveal.

    `right_place` and `mean_distance` are what the best method reaches against a lone source that stays: it names the
    right place at most this often, and its mean distance is at least this. `std` is the least standard deviation along
    an axis of an unbiased method at a typical place. None if there is only one place. `stay` is the epsilon for a
    source that stays all that time, at the delta of the claim for stays; None without one.
    """

    time: str
    readings: int
    epsilon: float
    right_place: float | None
    mean_distance: float | None
    std: float | None
    stay: float | None = None


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
        epsilon = cloak.over(readings).epsilon(cloak.delta)
        less = None if std is None else std * math.sqrt(within / worth)
        stay = _stay(cloak, readings)
        spans.append(OverTime(name, readings, epsilon if spans else cloak.epsilon, right, mean, less, stay))
    return spans


def _stay(cloak: Cloak, readings: int) -> float | None:
    return (
        None if cloak.stay is None else Profile(cloak.stay_mu(readings), cloak.family.doubt).epsilon(cloak.stay.delta)
    )


def print_over_time(cloak: Cloak, over: list[OverTime]) -> None:
    """Print what an observer who keeps every reading learns in each span of time."""
    unit = f" {unit_of_length(cloak.physics)}".rstrip()
    rows: list[tuple[str, ...]] = [
        (
            span.time,
            f"{span.readings:,}",
            rounded_up(span.epsilon, 3),
            "" if span.right_place is None else f"{rounded_up(100 * span.right_place, 3)} %",
            "" if span.mean_distance is None else f"{rounded_down(span.mean_distance, 2)}{unit}",
            "" if span.std is None else f"{span.std:.2g}{unit}",
        )
        for span in over
    ]
    title = f"An observer who keeps every reading (delta {cloak.delta:g})"
    heads: tuple[str, ...] = (
        "over",
        "readings of a sensor",
        "epsilon",
        "right place, at most",
        "mean distance, at least",
        "std",
    )
    if cloak.stay is not None:
        stays = [rounded_up(span.stay or 0.0, 3) for span in over]
        heads = (*heads[:3], "of a stay", *heads[3:])
        rows = [(*row[:3], stay, *row[3:]) for row, stay in zip(rows, stays, strict=True)]
    if over[0].right_place is None:
        most = 3 if cloak.stay is None else 4
        table(title, heads[:most], [row[:most] for row in rows])
        say("(An epsilon above about 10 hides nothing in practice. How soon a source is found is not computed.)\n")
        return
    table(title, heads, rows)
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
        **asdict(cloak.stay),
        "mu": cloak.stay_mu(cloak.stay.readings),
        "deviations": cloak.slow.deviations(cloak.steps).tolist(),
        "time_constant": float(cloak.offsets.over[0]),
        "renew": cloak.slow.renew,
    }
