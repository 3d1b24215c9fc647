"""The binary sensors of a plan: their claim, and what their reports reveal over a long time."""

from dataclasses import asdict, dataclass

from cloakwork._checks import rounded_up
from cloakwork.cli.output import say, table
from cloakwork.privacy import Cloak, Flip
from cloakwork.site import Plan, Site, clock_ms

HORIZONS = (
    ("an hour", 3_600),
    ("eight hours", 28_800),
    ("a day", 86_400),
    ("a week", 604_800),
    ("a year", 31_557_600),
)


@dataclass(frozen=True)
class BitsOverTime:
    """The epsilon of all reports of a binary sensor in a span of time, and `together` with all other sensors."""

    time: str
    epsilon: float
    together: float


def bits_over_time(flip: Flip, cloak: Cloak, plan: Plan) -> list[BitsOverTime]:
    """Rows on an hour, eight hours, a day, a week and a year; the sum is at the sum of both deltas."""
    delta = flip.delta + cloak.delta
    return [
        BitsOverTime(
            time,
            flip.over(plan.schedule.most(clock_ms(seconds)), flip.delta),
            plan.budget(cloak, seconds).epsilon(delta),
        )
        for time, seconds in HORIZONS
    ]


def bit_values(site: Site, flip: Flip, over: list[BitsOverTime]) -> dict[str, object]:
    """The claim of the binary sensors as plain values."""
    return {
        "sensors": list(site.binary_ids),
        **{key: getattr(flip, key) for key in ("epsilon", "delta", "each", "truth")},
        "over_time": [asdict(span) for span in over],
    }


def print_bits(site: Site, flip: Flip, cloak: Cloak, over: list[BitsOverTime]) -> None:
    """Print what the binary sensors hide, and what they reveal over a day, a week and a year."""
    say(f"\nBinary sensors: {', '.join(site.binary_ids)}\n\n{flip.explain()}\n")
    say(
        "The other sensors of this site do not hide presence: where they see the same zones, this claim hides little.\n"
    )
    rows = [(span.time, rounded_up(span.epsilon, 3), rounded_up(span.together, 3)) for span in over]
    title = f"An observer who keeps everything (delta {flip.delta:g} for bits, {flip.delta + cloak.delta:g} together)"
    table(title, ("over", "epsilon of the bits", "with all other sensors"), rows)
    say("(The last column is for someone who moves within alpha, in each frame, and is there or not besides.)\n")
    say("(Someone who is there, or away, all that time: habits show over weeks, whatever hides a single window.)\n")
