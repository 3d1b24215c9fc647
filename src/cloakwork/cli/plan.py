"""`cloakwork plan`."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from cloakwork._checks import FloatArray, up
from cloakwork.cli.output import as_json, busy, say, table
from cloakwork.privacy import Cloak
from cloakwork.site import Site, load_site

HORIZONS = (("a day", 86400.0), ("a week", 604800.0), ("a year", 31557600.0))


def run_plan(path: Path, *, json: bool) -> None:
    """Print the plan of a site."""
    site = load_site(path)
    with busy("planning the noise"):
        cloak = site.cloak()
        values = plan_values(site, cloak)
    if json:
        as_json(values)
    else:
        _print(site, cloak)


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
        "max_count": site.spec.sources.max_count,
        "over_time": [{"time": name, "epsilon": epsilon} for name, epsilon in _over_time(site, cloak)],
        "model_set": list(cloak.family.tolerance.sentences()),
        "explanation": asdict(cloak.explain(sensor_names=site.sensor_ids)),
    }


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
        ("step of a reading", _range(cloak.steps)),
        ("cost of the step", f"{up(100 * cloak.resolution_cost, 2)} % more noise"),
    ]
    table(f"Plan for {site.name}", ("", "value"), rows)
    over = [(name, up(epsilon, 3)) for name, epsilon in _over_time(site, cloak)]
    if over:
        table(f"Someone who keeps every window (delta {cloak.delta:g})", ("over", "epsilon"), over)
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
