"""The plan of a site of bits: what it hides, and what its reports reveal over a long time."""

from dataclasses import asdict, dataclass
from pathlib import Path

from cloakwork._checks import rounded_down, rounded_up
from cloakwork.cli.output import as_json, say, table
from cloakwork.cli.planned_accuracy import HORIZONS, duration
from cloakwork.cli.planned_noise import write_plan
from cloakwork.site import BitPlan, BitSite, clock_ms, freeze_bits


@dataclass(frozen=True)
class BitsOverTime:
    """The most reports of a sensor in a span of time, and the epsilon of all that one person can change in them."""

    time: str
    readings: int
    epsilon: float


def plan_bits(site: BitSite, path: Path, out: Path | None, *, json: bool) -> None:
    """Print the plan of a site of bits, and write it to a file if one is given."""
    plan = freeze_bits(site)
    over = bits_over_time(site, plan)
    if out is not None:
        write_plan(plan, out, path)
    if json:
        as_json(bit_values(site, plan, over))
    else:
        _print(site, plan, over)


def bits_over_time(site: BitSite, plan: BitPlan) -> list[BitsOverTime]:
    """Rows on a window, and on an hour, eight hours, a day, a week and a year if these are longer."""
    flip, window = site.flip, plan.window
    spans = [(duration(window), flip.readings_per_window, flip.epsilon)]
    for name, seconds in HORIZONS:
        if seconds > window:
            readings = plan.schedule.most(clock_ms(seconds))
            spans.append((name, readings, flip.compose(readings, flip.delta)))
    return [BitsOverTime(*span) for span in spans]


def bit_values(site: BitSite, plan: BitPlan, over: list[BitsOverTime]) -> dict[str, object]:
    """The plan as plain values."""
    return {
        "site": site.name,
        "plan": plan.digest,
        "sensors": list(plan.ids),
        "zones": [zone.id for zone in site.zones],
        "epsilon": plan.claim.epsilon,
        "delta": plan.claim.delta,
        "shared": plan.claim.shared,
        "window_seconds": plan.window,
        "readings_per_window": plan.claim.readings_per_window,
        "schedule": asdict(plan.schedule),
        "each": plan.each,
        "truth": 1 - plan.other,
        "over_time": [asdict(span) for span in over],
        "assumptions": list(site.assumptions),
    }


def _print(site: BitSite, plan: BitPlan, over: list[BitsOverTime]) -> None:
    claim, window = plan.claim, duration(plan.window)
    say(
        f"In any {window}, whether one person is there, when, and in which zone, is hidden (epsilon {claim.epsilon:g}, "
        f"delta {claim.delta:g}) from anyone who sees the reports of all sensors of this site and no more, if devices "
        "are as stated.\n"
    )
    rows = [
        ("sensors", f"{len(plan.ids):,}"),
        ("zones", ", ".join(zone.label for zone in site.zones)),
        (f"claim for {window} (epsilon, delta)", f"({claim.epsilon:g}, {claim.delta:g})"),
        ("sensors that one person changes in a reading, at most", f"{claim.shared:,}"),
        (f"readings allowed in {window}", f"{claim.readings_per_window:,}"),
        ("reading period of a device", duration(plan.schedule.period_ms / 1000)),
        ("reports that are true", f"{rounded_down(100 * (1 - plan.other), 4)} %"),
    ]
    table(f"Plan for {site.name}", ("", "value"), rows)
    say(f"{site.flip.explain()}\n{' '.join(site.assumptions)}\n")
    table(
        f"An observer who keeps every report (delta {claim.delta:g})",
        ("over", "readings of a sensor", "epsilon"),
        [(span.time, f"{span.readings:,}", rounded_up(span.epsilon, 3)) for span in over],
    )
    say("(An epsilon above about 10 hides nothing in practice: over long times, habits show.)\n")
