"""`cloakwork calibrate`."""

import difflib
import math
from pathlib import Path
from typing import Annotated

import numpy as np

from cloakwork._checks import percent, rounded_up
from cloakwork.cli.arguments import Json, SiteFile, option, reads
from cloakwork.cli.output import check_picture, note, out, print_json, program, refuse_input, say, working, written
from cloakwork.cli.report import table
from cloakwork.errors import InputError
from cloakwork.fitting import Fitted, MeasuredShifts, WalkFit, fit_walk, measured_shifts, read_walk, rounded
from cloakwork.site import Site, edited, listed_sensors, load_site, parse_site, plan_beside

Changes = dict[tuple[str | int, ...], float]
NOTABLE = 0.05  # a gain this far from the others' is worth correcting
LARGE_GAIN = 0.3  # a tolerance whose noise is worth another walk


def calibrate(
    path: SiteFile,
    walk: Annotated[Path, option("File of start,end,x,y: where you stood.", callback=reads())],
    readings: Annotated[Path, option("File of time,sensor,value: true readings meanwhile.", callback=reads())],
    target: Annotated[Path | None, option("Site file to write with the fitted values.", "--out")] = None,
    write: Annotated[bool, option("Change the site file itself.", "--write")] = False,
    plot: Annotated[Path | None, option("Picture of the walk against the model to write.")] = None,
    json: Json = False,
) -> None:
    """Fit the physics of a floor plan to the readings of a walk."""
    if write and target is not None:
        raise InputError("give either --write, which changes the site file, or --out with another file.")
    site, inputs = load_site(path), (path, walk, readings)
    fit = _fitted(site, walk, readings, plot, inputs)
    with working("covering the confidence region"):
        changes = _walk_changes(fit)
    text = path.read_text(encoding="utf-8")
    new = _new_text(site, text, changes)
    with working("comparing the shifts between spots"):
        shifts = _shifts(fit, parse_site(new, folder=site.folder))
    _say_kept(site, changes)
    if json:
        print_json(_values(fit, changes) | {"shifts": _shift_values(shifts)})
    else:
        _report(fit, _tolerance(changes))
        report_shifts(shifts, site.unit)
    if write or target is not None:
        _write(new, target or path, inputs[1:] if write else inputs, wrong=fit.wrong)
    else:
        if not json:
            _show(text, new, path)
        note("nothing is written: add --write to change the site file, or --out FILE for another one")
    true = f"{readings} holds" if plot is None else f"{readings} and {plot} hold"
    note(f"{true} true readings, {walk} says where you were: keep them to yourself, delete them once the fit is good")


def _fitted(site: Site, walk: Path, readings: Path, plot: Path | None, inputs: tuple[Path, ...]) -> WalkFit:
    """Return a fit that is good enough to write."""
    if plot is not None:
        check_picture(plot)
        refuse_input(plot, *inputs)
    with working("fitting the model to the walk"):
        fit = fit_walk(site, read_walk(site, walk, readings))
    if plot is not None:
        with working("drawing"):
            from cloakwork.cli.draw import draw_walk  # noqa: PLC0415 - Matplotlib is slow to load

            draw_walk(plot, fit)
        note(f"wrote the picture, which shows true readings, to {plot}")
    if pairs := fit.swapped():
        named = " and ".join(f"{a} with {b}" for a, b in pairs)
        raise InputError(
            f"sensors seem to be swapped: {named}. Each fits far better at the place of the other. Exchange their ids "
            "in the readings and on the devices, or their places in the site file.",
            swapped=tuple(pairs),
        )
    if fit.unseen:
        raise InputError(
            f"the walk came too seldom near {', '.join(fit.unseen[:8])}: their gains are not known to 15 %, so no "
            "tolerance can cover them. Stand at spots nearer to them, or longer.",
            sensors=tuple(fit.unseen),
        )
    if not fit.reach.known:
        raise InputError(
            f"the walk cannot tell the reach: {fit.reach} m. Stand at more spots, some near each sensor and some far "
            "from it, or longer.",
            reach=fit.reach,
        )
    return fit


def _shifts(fit: WalkFit, site: Site) -> MeasuredShifts:
    """Compare the spots at which all sensors read with the site as it would be written."""
    walk = fit.walk
    spots = ~np.isnan(walk.at[:, 0]) & (walk.counts > 0).all(axis=1)
    return measured_shifts(
        site.cloak(), walk.at[spots], walk.means[spots], variances=walk.variances[spots], freedom=walk.freedom
    )


def _walk_changes(fit: WalkFit) -> Changes:
    """The keys of the site file that a walk changes: the strength only where the site states no range of them."""
    spec, tolerance = fit.site.spec, fit.tolerance
    changes: Changes = {
        ("physics", "reach"): rounded(fit.reach.value),
        ("physics", "tolerance", "diffusion"): tolerance.diffusion,
        ("physics", "tolerance", "gain"): tolerance.gain,
        ("physics", "footprint"): rounded(fit.footprint.value),
        **{("sensor", k, "baseline"): rounded_baseline(value) for k, value in enumerate(fit.baselines.tolist())},
        **{("sensor", k, "map_error"): rounded_baseline(value) for k, value in enumerate(fit.map_errors.tolist())},
    }
    if not isinstance(spec.sources.strength, tuple):
        changes["sources", "strength"] = rounded(fit.strength.value)
    if "baseline" in spec.model_fields_set:
        changes["baseline",] = rounded_baseline(float(fit.baselines.mean()))
    return changes


def _tolerance(changes: Changes) -> dict[str, float]:
    return {key: changes[("physics", "tolerance", key)] for key in ("diffusion", "gain")}


def _say_kept(site: Site, changes: Changes) -> None:
    """Say which stated errors stay, since the fit would do with less."""
    for name in ("diffusion", "gain"):
        stated = getattr(site.tolerance, name)
        if stated and changes.get(("physics", "tolerance", name)) == stated:
            note(f"{name} = {stated:g} under [physics.tolerance] stays: these readings would do with less")


def rounded_baseline(value: float) -> float:
    """A baseline or an error as it is written, to a thousandth of the unit."""
    return round(value, 3)


def _new_text(site: Site, text: str, changes: Changes) -> str:
    at = site.physics.sensor_positions
    if not site.spec.sensor and at is not None and any(path[0] == "sensor" for path in changes):
        text = listed_sensors(text, list(zip(site.sensor_ids, at.tolist(), strict=True)))
    return edited(text, changes)


def _show(old: str, new: str, path: Path) -> None:
    """Print what would change."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), "fitted", lineterm="", n=1)
    out.print("\n".join(lines))


def _write(text: str, target: Path, inputs: tuple[Path, ...], *, wrong: bool) -> None:
    with written(target, *inputs) as file:
        file.write(text)
    if wrong:
        note(f"wrote {target}, but do not plan with it: the model does not fit. Fix what is named, and walk again")
    else:
        note(f"wrote {target}; next: {program()} plan {target} --out {plan_beside(target)}")


def _report(fit: WalkFit, tolerance: dict[str, float]) -> None:
    unit = fit.site.unit
    rows = [
        ("reach", f"{fit.reach} m"),
        ("footprint", f"{fit.footprint} m"),
        ("strength", str(fit.strength)),
        ("noise of a reading", f"{fit.walk.noise.min():.3g} to {fit.walk.noise.max():.3g} {unit}".rstrip()),
        ("error of the map", f"{fit.map_errors.min():.2g} to {fit.map_errors.max():.2g} {unit}".rstrip()),
        ("tolerance", ", ".join(f"{name} {value:g}" for name, value in tolerance.items())),
    ]
    table(f"{fit.site.name}: fitted to {len(fit.walk.at)} spots, with 90 % intervals", ("", "value"), rows)
    for name, gain, error in zip(fit.site.sensor_ids, fit.gains.tolist(), fit.gain_errors.tolist(), strict=True):
        if abs(gain - 1) > max(NOTABLE, 3 * error):
            say(
                f"{name} reads {gain:.3f} times as much warmth as the others (+- {error:.3f}): multiply it by "
                f"{1 / gain:.3f} where it measures, and walk again; the tolerance would then be smaller"
            )
    if fit.walk.unsettled < 0.001:
        say(
            "the readings still change while you stand: leave the first minutes at each spot out of the walk, or state "
            "memory = true under [physics.tolerance]"
        )
    misplaced = fit.misplaced()
    for name, (x, y) in misplaced.items():
        say(f"sensor {name} would fit better at ({x:g}, {y:g}): check where it is")
    if not fit.wrong:
        say(f"the model fits: residuals as repeated readings explain them (p = {fit.p_value:.2g})")
        if tolerance["gain"] > LARGE_GAIN:
            say(
                f"a tolerance of {percent(tolerance['gain'])} in gain costs about as much more noise: to reduce it, "
                "walk again with more spots, some within a metre of each sensor, and stand longer at each"
            )
        return
    say(
        f"the model does not fit (p = {fit.p_value:.1g}): it is off by up to {fit.map_errors.max():.2g} {unit}".rstrip()
        + ". The intervals above allow for that, and recovery will"
    )
    if fit.drifts:
        say("  the baselines drift during the walk: state [drift] in the site file, and calibrate again")
        return
    for name in [name for name in fit.bad_sensors() if name not in misplaced][:8]:
        say(f"  sensor {name} fits badly: check what is near it")
    for label in fit.bad_rooms()[:8]:
        say(f"  {label} fits badly: check its walls and doors, and for another source of heat")


def report_shifts(shifts: MeasuredShifts, unit: str) -> None:
    """Print the shifts between spots beside those that the model allows, and what follows for alpha."""
    alpha, unit = shifts.cloak.alpha, f" {unit}".rstrip()
    rows = [
        (
            f"{band.shortest:.2g} to {band.longest:.2g} m",
            str(band.pairs),
            f"{band.typical:.3g}{unit}",
            f"{band.allowed:.3g}{unit}",
        )
        for band in shifts.bands()
    ]
    columns = ("between spots", "pairs", "typical shift", "shift that the new model allows")
    table("Shifts of the readings between spots", columns, rows)
    if shifts.covers(alpha):
        say(f"the new model allows every shift between spots within alpha = {alpha:g} m")
    elif shifts.distances[0] > 1.5 * alpha:
        say(
            f"the nearest spots are {shifts.distances[0]:.2g} m apart, so nothing is known of real moves within alpha "
            f"= {alpha:g} m: to test the guarantee, stand at some pairs of spots as near as that"
        )
    else:
        needed, modelled = shifts.sensitivity(alpha), shifts.cloak.sensitivity
        every = f"{shifts.alpha:.2g} m" if math.isfinite(shifts.alpha) else "no distance between these spots"
        say(
            f"alpha = {alpha:g} m is not covered: the shifts between near spots need a sensitivity of "
            f"{needed:.3g}{unit}, and the new model has {modelled:.3g}{unit}. The model covers every measured "
            f"shift from {every} on. State such an alpha; or state alpha = "
            f"{rounded_up(needed / shifts.slope, 3)}, whose noise covers real moves of {alpha:g} m"
        )


def _shift_values(shifts: MeasuredShifts) -> dict[str, object]:
    alpha = shifts.cloak.alpha
    return {
        "bands": shifts.bands(),
        "sensitivity": {"needed": shifts.sensitivity(alpha), "model": shifts.cloak.sensitivity},
        "covers_alpha": shifts.covers(alpha),
        "alpha": shifts.alpha,
    }


def _values(fit: WalkFit, changes: Changes) -> dict[str, object]:
    return {
        "site": fit.site.name,
        **{name: _interval(getattr(fit, name)) for name in ("reach", "footprint", "strength")},
        "gains": dict(zip(fit.site.sensor_ids, fit.gains.tolist(), strict=True)),
        "baselines": dict(zip(fit.site.sensor_ids, fit.baselines.tolist(), strict=True)),
        "tolerance": _tolerance(changes),
        "p_value": fit.p_value,
        "fits": not fit.wrong,
        "map_errors": dict(zip(fit.site.sensor_ids, fit.map_errors.tolist(), strict=True)),
        "misplaced": fit.misplaced(),
        "bad_sensors": fit.bad_sensors(),
        "bad_rooms": fit.bad_rooms(),
    }


def _interval(found: Fitted) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}
