"""`cloakwork calibrate`."""

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cloakwork._checks import rounded_up
from cloakwork.cli.arguments import PICTURES, Json, SiteFile, option, reads, writes
from cloakwork.cli.files import written
from cloakwork.cli.output import note, program, working
from cloakwork.cli.report import Labelled, Row, render
from cloakwork.errors import InputError
from cloakwork.fitting import MeasuredShifts, WalkFit, fit_walk, measured_shifts, read_walk, rounded
from cloakwork.site import Site, edited, listed_sensors, load_site, parse_site, plan_beside

Changes = dict[tuple[str | int, ...], float]
NOTABLE = 0.05  # a gain this far from the others' is worth correcting
SHOWN = 8  # sensors or rooms that a message names


def calibrate(
    path: SiteFile,
    walk: Annotated[Path, option("File of start,end,x,y: where you stood.", callback=reads())],
    readings: Annotated[Path, option("File of time,sensor,value: true readings meanwhile.", callback=reads())],
    target: Annotated[
        Path | None, option("Site file to write with the fitted values.", "--out", callback=writes())
    ] = None,
    write: Annotated[bool, option("Change the site file itself.", "--write")] = False,
    plot: Annotated[
        Path | None, option("Picture of the walk against the model to write.", callback=writes(*PICTURES))
    ] = None,
    json: Json = False,
) -> None:
    """Fit the physics of a floor plan to the readings of a walk."""
    if write and target is not None:
        raise InputError("give either --write, which changes the site file, or --out with another file.")
    site, target = load_site(path), path if write else target
    with working("fitting the model to the walk"):
        fit = fit_walk(site, read_walk(site, walk, readings))
    if plot is not None:
        with working("drawing"):
            from cloakwork.cli.draw import draw_walk  # noqa: PLC0415 - Matplotlib is slow to load

            draw_walk(plot, fit)
    _refuse_useless(fit)
    with working("covering the confidence region"):
        changes = _changes(fit)
    text = path.read_text(encoding="utf-8")
    new = _new_text(site, text, changes)
    with working("comparing the shifts between spots"):
        shifts = _shifts(fit, parse_site(new, folder=site.folder))
    difference = difflib.unified_diff(text.splitlines(), new.splitlines(), str(path), "fitted", lineterm="", n=1)
    render(CalibrationReport(fit, changes, shifts, () if target else tuple(difference)), json=json)
    if target is None:
        note("nothing is written: add --write to change the site file, or --out FILE for another one")
    else:
        with written(target) as file:
            file.write(new)
        correct = f"next: {program()} plan {target} --out {plan_beside(target)}"
        wrong = "do not plan with it: the model does not fit. Fix what is named, and walk again"
        note(f"wrote {target}; {wrong if fit.wrong else correct}")
    true = f"{readings} holds" if plot is None else f"{readings} and {plot} hold"
    note(f"{true} true readings, {walk} says where you were: keep them to yourself, delete them once the fit is good")


def _refuse_useless(fit: WalkFit) -> None:
    """Refuse a fit that is not good enough to write."""
    if pairs := fit.swapped():
        named = " and ".join(f"{a} with {b}" for a, b in pairs)
        raise InputError(
            f"sensors seem to be swapped: {named}. Each fits far better at the place of the other. Exchange their ids "
            "in the readings and on the devices, or their places in the site file.",
            swapped=tuple(pairs),
        )
    if fit.unseen:
        raise InputError(
            f"the walk came too seldom near {', '.join(fit.unseen[:SHOWN])}: their gains are not known to 15 %, so no "
            "tolerance can cover them. Stand at spots nearer to them, or longer.",
            sensors=tuple(fit.unseen),
        )
    if not fit.reach.known:
        raise InputError(
            f"the walk cannot tell the reach: {fit.reach} m. Stand at more spots, some near each sensor and some far "
            "from it, or longer.",
            reach=fit.reach,
        )


def _shifts(fit: WalkFit, site: Site) -> MeasuredShifts:
    """Compare the spots at which all sensors read with the site as it would be written."""
    walk = fit.walk
    spots = ~np.isnan(walk.at[:, 0]) & (walk.counts > 0).all(axis=1)
    return measured_shifts(
        site.cloak(), walk.at[spots], walk.means[spots], variances=walk.variances[spots], freedom=walk.freedom
    )


def _changes(fit: WalkFit) -> Changes:
    """The keys of the site file that a walk changes: the strength only where the site states no range of them."""
    spec, tolerance = fit.site.spec, fit.tolerance
    changes: Changes = {
        ("physics", "reach"): rounded(fit.reach.value),
        ("physics", "tolerance", "diffusion"): tolerance.diffusion,
        ("physics", "tolerance", "gain"): tolerance.gain,
        ("physics", "footprint"): rounded(fit.footprint.value),
        **{("sensor", k, "baseline"): round(value, 3) for k, value in enumerate(fit.baselines.tolist())},
        **{("sensor", k, "map_error"): round(value, 3) for k, value in enumerate(fit.map_errors.tolist())},
    }
    if not isinstance(spec.sources.strength, tuple):
        changes["sources", "strength"] = rounded(fit.strength.value)
    if "baseline" in spec.model_fields_set:
        changes["baseline",] = round(float(fit.baselines.mean()), 3)
    return changes


def _new_text(site: Site, text: str, changes: Changes) -> str:
    at = site.physics.sensor_positions
    if not site.spec.sensor and at is not None:
        text = listed_sensors(text, list(zip(site.sensor_ids, at.tolist(), strict=True)))
    return edited(text, changes)


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """The fitted physics, what does not fit, how far the model covers the walk, and what would change."""

    fit: WalkFit
    changes: Changes
    shifts: MeasuredShifts
    difference: tuple[str, ...]

    @property
    def _tolerance(self) -> dict[str, float]:
        return {key: self.changes["physics", "tolerance", key] for key in ("diffusion", "gain")}

    def as_dict(self) -> Mapping[str, Any]:
        """Every fitted value."""
        fit, shifts, alpha = self.fit, self.shifts, self.shifts.cloak.alpha
        of_sensors = ("gains", "baselines", "map_errors")
        return {
            "site": fit.site.name,
            **{name: getattr(fit, name) for name in ("reach", "footprint", "strength")},
            **{name: dict(zip(fit.site.sensor_ids, getattr(fit, name).tolist(), strict=True)) for name in of_sensors},
            "tolerance": self._tolerance,
            "p_value": fit.p_value,
            "fits": not fit.wrong,
            "misplaced": fit.misplaced(),
            "bad_sensors": fit.bad_sensors(),
            "bad_rooms": fit.bad_rooms(),
            "shifts": {
                "sensitivity": {"needed": shifts.sensitivity(alpha), "model": shifts.cloak.sensitivity},
                "covers_alpha": shifts.covers(alpha),
                "alpha": shifts.alpha,
            },
        }

    def rows(self) -> Iterator[Row]:
        """The fit, what it says about the site, the shifts, and the changes."""
        fit, unit = self.fit, f" {self.fit.site.unit}".rstrip()
        yield f"{fit.site.name}: fitted to {len(fit.walk.at)} spots, with 90 % intervals"
        yield Labelled("reach", f"{fit.reach} m")
        yield Labelled("footprint", f"{fit.footprint} m")
        yield Labelled("strength", str(fit.strength))
        yield Labelled("noise of a reading", f"{fit.walk.noise.min():.3g} to {fit.walk.noise.max():.3g}{unit}")
        yield Labelled("error of the map", f"{fit.map_errors.min():.2g} to {fit.map_errors.max():.2g}{unit}")
        yield Labelled("tolerance", ", ".join(f"{name} {value:g}" for name, value in self._tolerance.items()))
        yield ""
        yield from self._findings()
        yield ""
        yield from shift_rows(self.shifts, unit)
        yield from ("", *self.difference) if self.difference else ()

    def _findings(self) -> Iterator[str]:
        """What to correct before the values are used."""
        fit = self.fit
        for name, gain, error in zip(fit.site.sensor_ids, fit.gains.tolist(), fit.gain_errors.tolist(), strict=True):
            if abs(gain - 1) > max(NOTABLE, 3 * error):
                yield (
                    f"{name} reads {gain:.3f} times as much warmth as the others (+- {error:.3f}): multiply it by "
                    f"{1 / gain:.3f} where it measures, and walk again; the tolerance would then be smaller"
                )
        if fit.walk.unsettled < 0.001:
            yield (
                "the readings still change while you stand: leave the first minutes at each spot out of the walk, or "
                "state memory = true under [physics.tolerance]"
            )
        misplaced = fit.misplaced()
        for name, (x, y) in misplaced.items():
            yield f"sensor {name} would fit better at ({x:g}, {y:g}): check where it is"
        if not fit.wrong:
            yield f"the model fits: residuals as repeated readings explain them (p = {fit.p_value:.2g})"
            return
        off = f"{fit.map_errors.max():.2g} {fit.site.unit}".rstrip()
        yield (
            f"the model does not fit (p = {fit.p_value:.1g}): it is off by up to {off}. The intervals above allow for "
            "that, and recovery will"
        )
        if fit.drifts:
            yield "  the baselines drift during the walk: state [drift] in the site file, and calibrate again"
            return
        bad = [name for name in fit.bad_sensors() if name not in misplaced]
        yield from (f"  sensor {name} fits badly: check what is near it" for name in bad[:SHOWN])
        for label in fit.bad_rooms()[:SHOWN]:
            yield f"  {label} fits badly: check its walls and doors, and for another source of heat"


def shift_rows(shifts: MeasuredShifts, unit: str) -> Iterator[Row]:
    """Whether the model allows the shifts between spots, and what follows for alpha."""
    alpha = shifts.cloak.alpha
    if shifts.covers(alpha):
        yield f"the new model allows every shift between spots within alpha = {alpha:g} m"
    elif shifts.distances[0] > 1.5 * alpha:
        yield (
            f"the nearest spots are {shifts.distances[0]:.2g} m apart, so nothing is known of real moves within alpha "
            f"= {alpha:g} m: to test the guarantee, stand at some pairs of spots as near as that"
        )
    else:
        needed, modelled = shifts.sensitivity(alpha), shifts.cloak.sensitivity
        every = f"{shifts.alpha:.2g} m" if math.isfinite(shifts.alpha) else "no distance between these spots"
        yield (
            f"alpha = {alpha:g} m is not covered: the shifts between near spots need a sensitivity of "
            f"{needed:.3g}{unit}, and the new model has {modelled:.3g}{unit}. The model covers every measured "
            f"shift from {every} on. State such an alpha; or state alpha = "
            f"{rounded_up(needed / shifts.slope, 3)}, whose noise covers real moves of {alpha:g} m"
        )
