"""`cloakwork plan`."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from cloakwork._checks import FloatArray, rounded_down, rounded_up
from cloakwork.accuracy import Limits, limits, papers_bound
from cloakwork.cli.frozen import planning, write_plan
from cloakwork.cli.output import as_json, busy, counted, say, table
from cloakwork.physics import FloorPlan, HeatLine
from cloakwork.privacy import Cloak, Design, DesignReport, Profile
from cloakwork.recovery import Problem, noticed
from cloakwork.site import Plan, Schedule, Site, clock_ms, freeze, load_site

EVEN = 0.95  # share of the readings that come although slots are whole milliseconds
HORIZONS = (("a day", 86_400), ("a week", 604_800), ("a year", 31_557_600))


@dataclass(frozen=True)
class OverTime:
    """What someone has who keeps all readings: at most so many, and the epsilon that they come to."""

    time: str
    readings: int
    epsilon: float


def run_plan(path: Path, *, out: Path | None, json: bool) -> None:
    """Print the plan of a site, and write it to a file."""
    site = load_site(path)
    with busy(planning(site)):
        cloak = site.cloak()
        plan = freeze(site, cloak)
        values = plan_values(site, cloak, plan)
    if out is not None:
        write_plan(plan, out, path, *site.files.values())
    if json:
        as_json(values)
    else:
        _print(site, cloak, plan)


def plan_values(site: Site, cloak: Cloak, plan: Plan) -> dict[str, object]:
    """The plan as plain values."""
    return {
        "site": site.name,
        "plan": plan.digest,
        "unit": site.spec.unit,
        "sensitivity": cloak.sensitivity,
        "sigma": cloak.sigma,
        "epsilon": cloak.epsilon,
        "delta": cloak.delta,
        "alpha": cloak.alpha,
        "scope": str(cloak.scope),
        "places": cloak.physics.places,
        "sensors": cloak.physics.sensors,
        "rank": cloak.physics.range().rank,
        "resolution": cloak.resolution,
        "resolution_cost": cloak.resolution_cost,
        "window_seconds": site.spec.privacy.window,
        "readings_per_window": cloak.readings_per_window,
        "schedule": asdict(plan.schedule),
        "noise_tables": {digest: asdict(one) for digest, one in plan.tables.items()},
        "mu": cloak.profile.mu,
        "design": {"kind": str(cloak.design), **achieved(cloak.design_report)},
        "noticed": _noticed(cloak),
        "limits": _limit_values(cloak),
        "estimator": _estimator(site),
        "max_count": site.spec.sources.max_count,
        "over_time": [asdict(one) for one in over_time(cloak, plan.schedule, site.spec.privacy.window)],
        "model_set": list(cloak.family.tolerance.sentences()),
        "explanation": asdict(cloak.explain(sensor_names=site.sensor_ids)),
    }


def achieved(report: DesignReport) -> dict[str, float | int | None]:
    """What a design achieves, as plain values."""
    return {**asdict(report), "gap": report.gap}


def _noticed(cloak: Cloak) -> float:
    """In what share of frames a lone unit source, at a typical place, is noticed at all."""
    return float(np.median(noticed(Problem.of(cloak.physics, cloak.sigmas, cloak.steps))))


def _estimator(site: Site) -> str:
    choice = site.estimator()
    return f"{type(choice.estimator).__name__}: {choice.reason}"


def _limits(cloak: Cloak) -> Limits | None:
    """What any method can learn from a whole window; nothing where there is only one place."""
    if cloak.physics.places < 2:
        return None
    return limits(cloak.physics, cloak.sigmas / np.sqrt(cloak.readings_per_window))


def _limit_values(cloak: Cloak) -> dict[str, object] | None:
    found = _limits(cloak)
    if found is None:
        return None
    values = {name: value if np.isfinite(value) else None for name, value in _numbers(found)}
    return {**values, "method": str(found.method), "sentences": list(_limit_sentences(cloak, found))}


def _numbers(found: Limits) -> list[tuple[str, float]]:
    return [(name, value) for name, value in asdict(found).items() if isinstance(value, float)]


def _limit_sentences(cloak: Cloak, found: Limits) -> tuple[str, ...]:
    physics = cloak.physics
    said = found.sentences("m" if isinstance(physics, FloorPlan) else "")
    if not isinstance(physics, HeatLine):
        return said
    middle = float(physics.space.places[physics.places // 2, 0])
    bound = papers_bound(physics, [middle], float(cloak.sigmas.max()) / np.sqrt(cloak.readings_per_window))
    if bound.informative:
        return (*said, f"The papers' upper bound for one source in the middle is {rounded_up(bound.value, 3)}.")
    return (*said, "The papers' upper bound for one source in the middle says nothing with this much noise.")


def over_time(cloak: Cloak, schedule: Schedule, window: float) -> list[OverTime]:
    """What a day, a week and a year of readings come to; none that is no longer than the window."""
    most = [(name, schedule.most(clock_ms(seconds))) for name, seconds in HORIZONS if seconds > window]
    return [OverTime(name, n, Profile(cloak.frame_mu).times(n).epsilon(cloak.delta)) for name, n in most]


def _print(site: Site, cloak: Cloak, plan: Plan) -> None:
    window = _duration(site.spec.privacy.window)
    peak = float(np.abs(cloak.physics.matrix).max())
    unit = f" {site.unit}".rstrip()
    rows = [
        ("places", f"{cloak.physics.places:,}"),
        ("sensors", f"{cloak.physics.sensors:,}"),
        ("numerical rank", f"{cloak.physics.range().rank}"),
        ("hidden distance, alpha", f"{cloak.alpha:g}"),
        (f"claim for {window} (epsilon, delta)", f"({cloak.epsilon:g}, {cloak.delta:g})"),
        ("against someone who sees", "all sensors" if cloak.scope == "network" else "one sensor"),
        (f"readings that the claim allows in {window}", f"{cloak.readings_per_window:,}"),
        ("a device reads every", _duration(plan.schedule.period_ms / 1000)),
        ("sensitivity", rounded_up(cloak.sensitivity, 6) + unit),
        ("noise of a reading, sigma", _range(cloak.sigmas) + unit),
        ("largest reading of one source", f"{peak:.4g}{unit}"),
        ("frames in which a lone source is noticed", f"{100 * _noticed(cloak):.0f} %"),
        ("step of a reading", _range(cloak.steps) + unit),
        ("cost of the step", f"{100 * cloak.resolution_cost:.3g} % more noise"),
        ("table of noise on a device", _sizes(plan)),
    ]
    table(f"Plan for {site.name}", ("", "value"), rows)
    if site.spec.privacy.resolution is None:
        say(
            "Note: this takes readings to be exact before they are rounded to the step. Hardware that reads in steps "
            "of its own needs more noise: set resolution under [privacy] to that step before you provision devices.\n"
        )
    for sentence in _rhythm(site, plan.schedule):
        say(f"{sentence}\n")
    _print_design(cloak)
    found = _limits(cloak)
    if found is not None:
        say("What can be learnt from one window, by any method\n")
        for sentence in _limit_sentences(cloak, found):
            say(f"- {sentence}")
        say(f"- Recovery will use {_estimator(site)}.\n")
    over = over_time(cloak, plan.schedule, site.spec.privacy.window)
    if over:
        shown = [(one.time, f"{one.readings:,}", rounded_up(one.epsilon, 3)) for one in over]
        title = f"Someone who keeps every reading (delta {cloak.delta:g})"
        table(title, ("over", "readings of a sensor", "epsilon"), shown)
        say("(An epsilon above about 10 hides nothing in practice.)\n")
    size = float(np.ptp(cloak.physics.space.places, axis=0).max(initial=0.0))
    if 0 < size < cloak.alpha:
        say(f"Note: alpha = {cloak.alpha:g} is larger than the whole space ({size:g}); check its unit.\n")
    if _noticed(cloak) < 0.5:
        say("Note: with this noise most lone sources leave no trace. Allow a larger epsilon or a smaller alpha.\n")
    say(cloak.explain(sensor_names=site.sensor_ids))


def _sizes(plan: Plan) -> str:
    sizes = [one.bytes for one in plan.tables.values()]
    low, high = min(sizes), max(sizes)
    return f"{high:,} bytes" if low == high else f"{low:,} to {high:,} bytes, by sensor"


def _rhythm(site: Site, schedule: Schedule) -> list[str]:
    """What the period does: the budget runs out before the window ends, or is never used up."""
    told = site.spec.privacy
    window, touched = _duration(told.window), schedule.slots_in(clock_ms(told.window))
    if schedule.pauses:
        return [
            f"After {counted(schedule.allowed, 'reading')} in a row all devices are silent until {window} is over: "
            f"they use {schedule.allowed:,} of {counted(schedule.window_slots, 'slot')}, the same ones. For even "
            "readings, leave out the period."
        ]
    if touched < (1.0 if told.period else EVEN) * schedule.allowed:
        return [
            f"A device takes at most {counted(touched, 'reading')} in {window}, and there is noise for "
            f"{schedule.allowed:,}. With readings_per_window = {touched} there would be less. What is said below of a "
            f"window is for {schedule.allowed:,}: standard deviations are {math.sqrt(schedule.allowed / touched):.2g} "
            "times as large."
        ]
    return []


def _print_design(cloak: Cloak) -> None:
    """How well a lone source is located, with the same noise for all and with the plan's, side by side."""
    report = cloak.design_report
    equal = (_range(cloak.allowance.equal().sigma), f"{report.equal_vicinity:.3g}", f"{report.equal_variance:.3g}")
    own = (_range(cloak.sigmas), f"{report.vicinity:.3g}", f"{report.variance:.3g}")
    names = ("noise of a reading, sigma", "standard deviation at a typical place", "mean variance over all places")
    title = "Where a lone source is, along one axis, from one window"
    if cloak.design is Design.EQUAL:
        table(title, ("", "the same noise for all"), list(zip(names, equal, strict=True)))
        return
    table(title, ("", "the same noise for all", "this plan"), list(zip(names, equal, own, strict=True)))
    say(f"(No noise at this guarantee has a mean variance below {rounded_down(report.bound or 0.0, 3)}.)\n")


def _range(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    return rounded_up(high) if low == high else f"{rounded_up(low)} to {rounded_up(high)}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:g} ms"
    for unit, size in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"
