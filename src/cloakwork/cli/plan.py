"""`cloakwork plan`."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from cloakwork._checks import FloatArray, up
from cloakwork.cli.output import as_json, busy, counted, say, table
from cloakwork.physics import Family, Tolerance
from cloakwork.privacy import Cloak
from cloakwork.recovery import Problem, noticed
from cloakwork.site import Site, load_site

HORIZONS = (("a day", 86400.0), ("a week", 604800.0), ("a year", 31557600.0))


def run_plan(path: Path, *, json: bool) -> None:
    """Print the plan of a site."""
    site = load_site(path)
    with busy(planning(site)):
        cloak = site.cloak()
        values = plan_values(site, cloak)
    if json:
        as_json(values)
    else:
        _print(site, cloak)


def planning(site: Site) -> str:
    """What to say while the noise of a site is worked out."""
    declared = site.spec.physics.tolerance
    family = Family(site.physics, Tolerance(declared.diffusion, declared.gain, declared.position, declared.doors))
    return f"planning the noise over {counted(len(family.members), 'model')}"


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
        "noticed": _noticed(cloak),
        "max_count": site.spec.sources.max_count,
        "over_time": [{"time": name, "epsilon": epsilon} for name, epsilon in _over_time(site, cloak)],
        "model_set": list(cloak.family.tolerance.sentences()),
        "explanation": asdict(cloak.explain(sensor_names=site.sensor_ids)),
    }


def _noticed(cloak: Cloak) -> float:
    """In what share of frames a lone unit source, at a typical place, is noticed at all."""
    return float(np.median(noticed(Problem.of(cloak.physics, cloak.sigmas, cloak.steps))))


def _over_time(site: Site, cloak: Cloak) -> list[tuple[str, float]]:
    window = site.spec.privacy.window
    return [
        # an interval of this length can touch one window more than it holds
        (name, cloak.profile.times(int(np.ceil(seconds / window)) + 1).epsilon(cloak.delta))
        for name, seconds in HORIZONS
        if seconds > window
    ]


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


def _range(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    return up(high) if low == high else f"{up(low)} to {up(high)}"


def _duration(seconds: float) -> str:
    for unit, size in (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"
