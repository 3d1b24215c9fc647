"""`cloakwork plan --choose`: which sensors to keep."""

import json as text_form
from collections.abc import Sequence
from pathlib import Path

from cloakwork.cli.output import as_json, bar, counted, say, table
from cloakwork.cli.plan import achieved
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Physics
from cloakwork.privacy import SensorChoice
from cloakwork.site import Site, load_site


def run_choose(path: Path, count: int, *, json: bool) -> None:
    """Print which sensors to keep, what they achieve, and the tables for the site file."""
    site = load_site(path)
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
        "chosen": achieved(choice.report),
        "even": achieved(choice.even_report) | {"sensors": [site.sensor_ids[k] for k in choice.even]},
        "all": achieved(choice.all_report),
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
