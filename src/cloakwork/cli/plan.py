"""`cloakwork plan`: the noise of a site, what it hides and what it costs; `--sweep` compares settings."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from cloakwork._checks import more_noise, percent, rounded_down, rounded_up, spread_of
from cloakwork.accuracy import Limits
from cloakwork.cli.arguments import Json, Scheduler, SiteFile
from cloakwork.cli.output import as_json, busy, counted, say, table
from cloakwork.cli.planned_accuracy import (
    OverTime,
    cost_of_drift,
    drift_sentences,
    duration,
    over_time,
    print_over_time,
    seen_sensors,
    share_detected,
    stay_rows,
    stay_values,
    unit_of_length,
    window_limits,
)
from cloakwork.cli.planned_bits import plan_bits
from cloakwork.cli.planned_noise import planning, refuse_impossible, write_plan
from cloakwork.cli.sweep import (
    Alphas,
    Epsilons,
    Frames,
    Kept,
    Needs,
    Plot,
    Readings,
    Resolutions,
    Sensors,
    Sweep,
    SweepOptions,
    sweep,
)
from cloakwork.errors import InputError
from cloakwork.physics import Nuisance
from cloakwork.privacy import LARGE_COST, Cloak, Design, DesignReport, Explanation, NoiseLaw
from cloakwork.site import BitSite, Plan, Schedule, Site, clock_ms, freeze, load_any_site

EVEN = 0.95  # share of the allowed readings that are taken, since slots are whole milliseconds
LOCATING = "Locating a lone source from one window, along one axis (Cramer-Rao: unbiased methods)"


def plan(
    path: SiteFile,
    compare: Sweep = False,
    alpha: Alphas = None,
    epsilon: Epsilons = None,
    readings: Readings = None,
    sensors: Sensors = None,
    resolution: Resolutions = None,
    need: Needs = None,
    frames: Frames = None,
    scheduler: Scheduler = None,
    kept: Kept = None,
    plot: Plot = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write the frozen plan to.")] = None,
    json: Json = False,
) -> None:
    """Print the plan of a site and write it to a file, or compare settings."""
    if compare and out is not None:
        raise InputError("--sweep with --out: change the site file first, then write its plan with --out.")
    site = load_any_site(path)
    options = SweepOptions(alpha, epsilon, readings, sensors, resolution, need, frames, plot, scheduler, kept)
    if isinstance(site, BitSite):
        if compare:
            raise InputError("--sweep compares maps, and bits have none. Change epsilon under [bits], and plan again.")
        options.refuse_any()
        plan_bits(site, path, out, json=json)
        return
    odd = refuse_impossible(site, path)
    if compare:
        sweep(site, path, options, json=json)
        return
    options.refuse_any()
    with busy(planning(site)):
        cloak = site.cloak()
        frozen = freeze(site, cloak)
        bounds = window_limits(cloak)
        over = over_time(site, cloak, frozen.schedule, bounds)
        explanation = cloak.explain(sensor_names=site.sensor_ids)
    if out is not None:
        write_plan(frozen, out, path, *site.files.values())
    if json:
        warnings = [str(oddity) for oddity in odd]
        as_json(plan_values(site, cloak, frozen, bounds, over, explanation) | {"warnings": warnings})
    else:
        _print(site, cloak, frozen, bounds, over)
        say(explanation)


def plan_values(
    site: Site, cloak: Cloak, plan: Plan, bounds: Limits | None, over: list[OverTime], explanation: Explanation
) -> dict[str, object]:
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
        "noise": str(cloak.noise),
        "places": cloak.physics.places,
        "sensors": cloak.physics.sensors,
        "rank": cloak.physics.rank,
        "step": cloak.step,
        "resolution": cloak.resolution,
        "noise_floor": cloak.noise_floor,
        "rests_on_noise_floor": cloak.rests_on_noise_floor,
        "resolution_cost": cloak.resolution_cost,
        "resolution_cost_without_noise_floor": cloak.resolution_cost_without_noise_floor,
        "timing": asdict(cloak.family.timing),
        "timing_cost": cloak.timing_cost,
        "memory_cost": None if np.isnan(cloak.memory_cost) else cloak.memory_cost,
        "window_seconds": site.spec.privacy.window,
        "readings_per_window": cloak.readings_per_window,
        "schedule": asdict(plan.schedule),
        "noise_tables": {digest: asdict(noise) for digest, noise in plan.tables.items()},
        "mu": cloak.profile.mu,
        "design": {"kind": str(cloak.design), **achieved(cloak.design_report)},
        "stay": stay_values(cloak),
        "noticed": share_detected(cloak),
        "drift": None if site.drift is None else asdict(cost_of_drift(site, cloak)),
        "limits": None if bounds is None else _limit_values(cloak, bounds),
        "estimator": _estimator(site),
        "max_count": site.spec.sources.max_count,
        "over_time": [asdict(span) for span in over],
        "left_open": list(site.left_open),
        "model_set": list(cloak.family.tolerance.sentences()),
        "explanation": asdict(explanation),
    }


def achieved(report: DesignReport) -> dict[str, float | int | None]:
    """The accuracy of a noise design, as plain values."""
    return {**asdict(report), "gap": report.gap}


def _estimator(site: Site) -> str:
    choice = site.estimator()
    return f"{type(choice.estimator).__name__}: {choice.reason}"


def _limit_values(cloak: Cloak, bounds: Limits) -> dict[str, object]:
    numbers = {name: value for name, value in asdict(bounds).items() if isinstance(value, float)}
    values = {name: value if np.isfinite(value) else None for name, value in numbers.items()}
    return {**values, "method": str(bounds.method), "sentences": list(bounds.sentences(unit_of_length(cloak.physics)))}


def _print(site: Site, cloak: Cloak, plan: Plan, bounds: Limits | None, over: list[OverTime]) -> None:
    window = duration(site.spec.privacy.window)
    unit, length = (f" {name}".rstrip() for name in (site.unit, unit_of_length(cloak.physics)))
    rows = [
        ("places", f"{cloak.physics.places:,}"),
        ("sensors", f"{cloak.physics.sensors:,}"),
        ("numerical rank", f"{cloak.physics.rank}"),
        ("hidden distance, alpha", f"{cloak.alpha:g}{length}"),
        (f"claim for {window} (epsilon, delta)", f"({cloak.epsilon:g}, {cloak.delta:g})"),
        ("observer sees", seen_sensors(cloak)),
        (f"readings allowed in {window}", f"{cloak.readings_per_window:,}"),
        ("reading period of a device", duration(plan.schedule.period_ms / 1000)),
        ("sensitivity", rounded_up(cloak.sensitivity, 6) + unit),
        (f"{cloak.noise.title()} noise of a reading, sigma", spread_of(cloak.sigmas) + unit),
        *stay_rows(cloak, unit),
        ("largest reading of one source", f"{cloak.physics.peak:.4g}{unit}"),
        ("frames that detect a lone source", f"{100 * share_detected(cloak):.0f} %"),
        ("step of the hardware", "none" if site.resolutions is None else spread_of(site.resolutions) + unit),
        *(
            ("noise floor of the sensors, at least", spread_of(own) + unit)
            for own in (site.noise_floors,)
            if own is not None
        ),
        ("step in which readings are sent", spread_of(cloak.steps) + unit),
        ("cost of the steps", more_noise(cloak.resolution_cost)),
        ("cost of measuring within " + duration(plan.schedule.spread), f"{percent(cloak.timing_cost)} more noise"),
        ("noise table on a device", _sizes(plan)),
    ]
    for sentence in [*_in_short(cloak, window, length, over), *site.left_open]:
        say(f"{sentence}\n")
    table(f"Plan for {site.name}", ("", "value"), rows)
    if cloak.resolution_cost > LARGE_COST and _gains_by_noise_floor(cloak):
        say(
            f"Note: noise floor {0 if site.noise_floors is None else spread_of(site.noise_floors)}: "
            f"{more_noise(cloak.resolution_cost)}. A sensor that is noisy before it rounds needs far less: measure its "
            "noise floor, and set noise_floor under [privacy].\n"
        )
    for sentence in [*_rhythm(site, plan.schedule), *drift_sentences(site, cloak, bounds)]:
        say(f"{sentence}\n")
    _print_design(cloak)
    if bounds is not None:
        say("How much one window reveals\n")
        for sentence in bounds.sentences(unit_of_length(cloak.physics)):
            say(f"- {sentence}")
        say(f"- Recovery will use {_estimator(site)}.\n")
    print_over_time(cloak, over)
    if share_detected(cloak) < 0.5:
        follow = "" if site.not_followed else "Following sources through many frames finds more: --sweep simulates it. "
        say(f"Note: a frame alone misses most lone sources. {follow}A larger epsilon or a smaller alpha helps.\n")


def _in_short(cloak: Cloak, window: str, length: str, over: list[OverTime]) -> list[str]:
    """The claim, and how soon it ends for a source that stays, each in a sentence."""
    claim = (
        f"In any {window}, a move of up to {cloak.alpha:g}{length} by one source of the stated strength is hidden "
        f"(epsilon {cloak.epsilon:g}, delta {cloak.delta:g}) from anyone who sees {seen_sensors(cloak)} and no more, "
        "if physics and devices are as stated."
    )
    near = [span for span in over if span.mean_distance is not None and span.mean_distance <= cloak.alpha]
    if not near:
        return [claim, "A source that stays is found in time: see the observer who keeps every reading, below."]
    mean = near[0].mean_distance or 0.0
    where = f"within {rounded_up(mean, 2)}{length} of it on average" if mean else "at its place"
    return [
        claim,
        f"A source that stays is found in time: after {near[0].time}, an observer who keeps all readings of all "
        f"sensors may be {where}, or nearer with knowledge of its habits.",
    ]


def _sizes(plan: Plan) -> str:
    sizes = [noise.bytes for noise in plan.tables.values()]
    low, high = min(sizes), max(sizes)
    return f"{high:,} bytes" if low == high else f"{low:,} to {high:,} bytes, by sensor"


def _rhythm(site: Site, schedule: Schedule) -> list[str]:
    """Notes on a period with which the budget runs out before the window ends, or is never used up."""
    privacy = site.spec.privacy
    window, slots = duration(privacy.window), schedule.slots_in(clock_ms(privacy.window))
    if schedule.pauses:
        return [
            f"After {counted(schedule.allowed, 'reading')} in a row, all devices are silent until {window} is over: "
            f"they use the same {schedule.allowed:,} of {counted(schedule.window_slots, 'slot')}. For even readings, "
            "leave out the period."
        ]
    if slots < (1.0 if privacy.period else EVEN) * schedule.allowed:
        return [
            f"A device takes at most {counted(slots, 'reading')} in {window}, but the noise is enough for "
            f"{schedule.allowed:,}. With readings_per_window = {slots} it would be less. The figures for a window "
            f"below assume {schedule.allowed:,} readings: real standard deviations are "
            f"{math.sqrt(schedule.allowed / slots):.2g} times as large."
        ]
    return []


def _gains_by_noise_floor(cloak: Cloak) -> bool:
    """Whether a claim that does not rest on a noise floor yet could."""
    return cloak.noise is NoiseLaw.GAUSSIAN and not cloak.rests_on_noise_floor


def _print_design(cloak: Cloak) -> None:
    """Compare how well a lone source is located with equal noise and with the plan's."""
    report = cloak.design_report
    equal = (spread_of(cloak.allowance.equal().sigma), f"{report.equal_vicinity:.3g}", f"{report.equal_variance:.3g}")
    own = (spread_of(cloak.sigmas), f"{report.vicinity:.3g}", f"{report.variance:.3g}")
    drift = cloak.allowance.drift
    learnt = ", learnt as sources are followed" if isinstance(drift, Nuisance) else ""
    title = f"{LOCATING}, with the stated drift{learnt}" if drift else LOCATING
    names = ("noise of a reading, sigma", "standard deviation at a typical place", "mean variance over all places")
    if cloak.design is Design.EQUAL:
        table(title, ("", "equal noise"), list(zip(names, equal, strict=True)))
        return
    table(title, ("", "equal noise", "this plan"), list(zip(names, equal, own, strict=True)))
    if report.bound is not None:
        least, memory = rounded_down(report.bound, 3), cloak.family.tolerance.memory
        no_noise = "Even in rooms without memory, no noise" if memory else "No noise"
        say(f"({no_noise} at this guarantee has a mean variance below {least}.)\n")
