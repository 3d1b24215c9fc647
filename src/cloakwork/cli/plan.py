"""`cloakwork plan`."""

import json as text_form
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cloakwork._checks import FloatArray, down, up
from cloakwork.cli.output import as_json, bar, busy, counted, say, table
from cloakwork.errors import InputError
from cloakwork.measure import Limits, limits, papers_bound
from cloakwork.physics import Family, FloorPlan, Graph, HeatLine, HeatPlane, Physics
from cloakwork.privacy import Cloak, Design, DesignReport, SensorChoice
from cloakwork.recovery import Problem, noticed
from cloakwork.site import Site, load_site

HORIZONS = (("a day", 86400.0), ("a week", 604800.0), ("a year", 31557600.0))


def run_plan(path: Path, *, choose: int | None = None, json: bool) -> None:
    """Print the plan of a site, or which of its sensors to keep."""
    site = load_site(path)
    if choose is not None:
        run_choose(site, choose, json=json)
        return
    with busy(planning(site)):
        cloak = site.cloak()
        values = plan_values(site, cloak)
    if json:
        as_json(values)
    else:
        _print(site, cloak)


def planning(site: Site) -> str:
    """What to say while the noise of a site is worked out."""
    models = counted(len(Family(site.physics, site.tolerance).members), "model")
    if Design(site.spec.privacy.design) is Design.EQUAL:
        return f"planning the noise over {models}"
    return f"sharing the noise among {counted(site.physics.sensors, 'sensor')} over {models}"


def plan_values(site: Site, cloak: Cloak) -> dict[str, object]:
    """The plan as plain values."""
    return {
        "site": site.name,
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
        "mu": cloak.profile.mu,
        "design": {"kind": str(cloak.design), **_achieved(cloak.design_report)},
        "noticed": _noticed(cloak),
        "limits": _limit_values(cloak),
        "estimator": _estimator(site),
        "max_count": site.spec.sources.max_count,
        "over_time": [{"time": name, "epsilon": epsilon} for name, epsilon in _over_time(site, cloak)],
        "model_set": list(cloak.family.tolerance.sentences()),
        "explanation": asdict(cloak.explain(sensor_names=site.sensor_ids)),
    }


def _achieved(report: DesignReport) -> dict[str, float | int | None]:
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
        return (*said, f"The papers' upper bound for one source in the middle is {up(bound.value, 3)}.")
    return (*said, "The papers' upper bound for one source in the middle says nothing with this much noise.")


def _over_time(site: Site, cloak: Cloak) -> list[tuple[str, float]]:
    window = site.spec.privacy.window
    # an interval of this length can touch one window more than it holds
    touched = [(name, int(np.ceil(seconds / window)) + 1) for name, seconds in HORIZONS if seconds > window]
    return [(f"{name}, {k:,} windows", cloak.profile.times(k).epsilon(cloak.delta)) for name, k in touched]


def _print(site: Site, cloak: Cloak) -> None:
    window = _duration(site.spec.privacy.window)
    peak = float(np.abs(cloak.physics.matrix).max())
    rows = [
        ("places", f"{cloak.physics.places:,}"),
        ("sensors", f"{cloak.physics.sensors:,}"),
        ("numerical rank", f"{cloak.physics.range().rank}"),
        ("hidden distance, alpha", f"{cloak.alpha:g}"),
        (f"claim for {window} (epsilon, delta)", f"({cloak.epsilon:g}, {cloak.delta:g})"),
        ("against someone who sees", "all sensors" if cloak.scope == "network" else "one sensor"),
        ("readings in a window", f"{cloak.readings_per_window}"),
        ("sensitivity", up(cloak.sensitivity, 6)),
        ("noise of a reading, sigma", _range(cloak.sigmas)),
        ("largest reading of one source", f"{peak:.4g}"),
        ("frames in which a lone source is noticed", f"{100 * _noticed(cloak):.0f} %"),
        ("step of a reading", _range(cloak.steps)),
        ("cost of the step", f"{100 * cloak.resolution_cost:.2g} % more noise"),
    ]
    table(f"Plan for {site.name}", ("", "value"), rows)
    _print_design(cloak)
    found = _limits(cloak)
    if found is not None:
        say("What can be learnt from one window, by any method\n")
        for sentence in _limit_sentences(cloak, found):
            say(f"- {sentence}")
        say(f"- Recovery will use {_estimator(site)}.\n")
    over = [(name, up(epsilon, 3)) for name, epsilon in _over_time(site, cloak)]
    if over:
        table(f"Someone who keeps every window (delta {cloak.delta:g})", ("over", "epsilon"), over)
        say("(An epsilon above about 10 hides nothing in practice.)\n")
    size = float(np.ptp(cloak.physics.space.places, axis=0).max(initial=0.0))
    if 0 < size < cloak.alpha:
        say(f"Note: alpha = {cloak.alpha:g} is larger than the whole space ({size:g}); check its unit.\n")
    if _noticed(cloak) < 0.5:
        say("Note: with this noise most lone sources leave no trace. Allow a larger epsilon or a smaller alpha.\n")
    say(cloak.explain(sensor_names=site.sensor_ids))


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
    say(f"(No noise at this guarantee has a mean variance below {down(report.bound or 0.0, 3)}.)\n")


def run_choose(site: Site, count: int, *, json: bool) -> None:
    """Print which sensors to keep, what they achieve, and the tables for the site file."""
    if count > site.physics.sensors:
        raise InputError(
            f"--choose {count}: {site.name} has {site.physics.sensors} sensors to choose from.", choose=count
        )
    with bar("choosing sensors", 100) as progress:
        choice = site.choose_sensors(count, progress=lambda part: progress(int(100 * part)))
    tables = sensor_tables(site, choice.sensors)
    if json:
        as_json(choice_values(site, choice) | {"tables": tables})
        return
    rows = [(site.sensor_ids[k], _position(site.physics, k) or f"row {k + 1}") for k in choice.sensors]
    table(f"{counted(count, 'sensor')} of {site.name} to keep", ("sensor", "at"), rows)
    every = choice.all_report
    accuracy = [
        ("these, noise of least error", choice.report.vicinity, choice.report.variance),
        ("as many spread evenly, noise of least error", choice.even_report.vicinity, choice.even_report.variance),
        (f"all {site.physics.sensors}, noise of least error", every.vicinity, every.variance),
        (f"all {site.physics.sensors}, the same noise for all", every.equal_vicinity, every.equal_variance),
    ]
    title = "Where a lone source is, along one axis, from one window"
    shown = [(name, f"{vicinity:.3g}", f"{variance:.3g}") for name, vicinity, variance in accuracy]
    table(title, ("sensors", "standard deviation at a typical place", "mean variance over all places"), shown)
    if site.spec.physics.kind == "matrix":
        say(f"Keep these rows of the matrix file, in this order: {', '.join(str(k + 1) for k in choice.sensors)}.\n")
    say("For the site file, in place of its sensors:\n")
    say(tables)


def choice_values(site: Site, choice: SensorChoice) -> dict[str, object]:
    """A choice of sensors as plain values."""
    return {
        "site": site.name,
        "sensors": [site.sensor_ids[k] for k in choice.sensors],
        "chosen": _achieved(choice.report),
        "even": _achieved(choice.even_report) | {"sensors": [site.sensor_ids[k] for k in choice.even]},
        "all": _achieved(choice.all_report),
    }


def sensor_tables(site: Site, sensors: Sequence[int]) -> str:
    """[[sensor]] tables for some of a site's sensors."""
    lines = []
    for k in sensors:
        lines += ["[[sensor]]", f'id = "{site.sensor_ids[k]}"']
        at = _position(site.physics, k)
        if at:
            lines.append(f"at = {at}")
        own = site.spec.sensor[k].baseline if site.spec.sensor else None
        if own is not None:
            lines.append(f"baseline = {own!r}")
        lines.append("")
    return "\n".join(lines)


def _position(physics: Physics, sensor: int) -> str:
    """Where a sensor is, as a site file says it; empty where that is not known."""
    if isinstance(physics, HeatLine):
        return repr(float(physics.sensor_positions[sensor]))
    if isinstance(physics, FloorPlan | HeatPlane):
        return repr([float(value) for value in physics.sensor_positions[sensor]])
    if isinstance(physics, Graph) and physics.space.labels is not None:
        return text_form.dumps(str(physics.space.labels[physics.sensor_places[sensor]]), ensure_ascii=False)
    return ""


def _range(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    return up(high) if low == high else f"{up(low)} to {up(high)}"


def _duration(seconds: float) -> str:
    for unit, size in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"
