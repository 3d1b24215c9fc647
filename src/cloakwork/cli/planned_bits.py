"""The binary sensors of a plan: their claim, and what their reports reveal over a long time."""

from cloakwork._checks import rounded_up
from cloakwork.cli.output import say, table
from cloakwork.privacy import Flip
from cloakwork.site import Schedule, Site, clock_ms

HORIZONS = (
    ("an hour", 3_600),
    ("eight hours", 28_800),
    ("a day", 86_400),
    ("a week", 604_800),
    ("a year", 31_557_600),
)


def bit_values(site: Site, flip: Flip, schedule: Schedule) -> dict[str, object]:
    """The claim of the binary sensors as plain values."""
    return {
        "sensors": list(site.binary_ids),
        **{key: getattr(flip, key) for key in ("epsilon", "delta", "each", "truth")},
        "over_time": [{"time": time, "epsilon": epsilon} for time, epsilon in _over(flip, schedule)],
    }


def print_bits(site: Site, flip: Flip, schedule: Schedule) -> None:
    """Print what the binary sensors hide, and what they reveal over a day, a week and a year."""
    say(f"\nBinary sensors: {', '.join(site.binary_ids)}\n\n{flip.explain()}\n")
    say(
        "The other sensors of this site do not hide presence: where they see the same zones, this claim hides little.\n"
    )
    rows = [(time, rounded_up(epsilon, 3)) for time, epsilon in _over(flip, schedule)]
    table(f"An observer who keeps every report (delta {flip.delta:g})", ("over", "epsilon"), rows)
    say("(Someone who is there, or away, all that time: habits show over weeks, whatever hides a single window.)\n")


def _over(flip: Flip, schedule: Schedule) -> list[tuple[str, float]]:
    return [(time, flip.over(schedule.most(clock_ms(seconds)), flip.delta)) for time, seconds in HORIZONS]
