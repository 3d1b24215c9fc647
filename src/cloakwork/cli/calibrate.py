"""`cloakwork calibrate`."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from cloakwork._checks import percent
from cloakwork.cli.arguments import Json, PlanFile, Since, SiteFile, Until, no_password
from cloakwork.cli.output import (
    as_json,
    bar,
    busy,
    check_picture,
    counted,
    note,
    noting_kept,
    out,
    program,
    refuse_input,
    refuse_unwritable,
    say,
    table,
    written,
)
from cloakwork.cli.planned_noise import planned_noise
from cloakwork.cli.time_arguments import parse_moment
from cloakwork.errors import InputError
from cloakwork.fitting import MOST_FRAMES, CloakedFit, Fitted, WalkFit, fit_cloaked, fit_walk, read_walk, rounded
from cloakwork.readings import OTHER_PLAN
from cloakwork.site import Site, edited, listed_sensors, load_site, plan_beside

Changes = dict[tuple[str | int, ...], float]
NOTABLE = 0.05  # a gain this far from the others' is worth correcting
LARGE_GAIN = 0.3  # a tolerance whose noise is worth another walk


def calibrate(
    path: SiteFile,
    walk: Annotated[Path | None, typer.Option(help="File of start,end,x,y or time,x,y: where you stood.")] = None,
    readings: Annotated[Path | None, typer.Option(help="File of time,sensor,value: true readings meanwhile.")] = None,
    from_store: Annotated[
        str | None, typer.Option(metavar="URL", callback=no_password, help="Fit to cloaked readings of this store.")
    ] = None,
    since: Since = None,
    until: Until = None,
    plan: PlanFile = None,
    target: Annotated[Path | None, typer.Option("--out", help="Site file to write with the fitted values.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Change the site file itself.")] = False,
    kept: Annotated[Path | None, typer.Option(help="File with which an interrupted fit to a store goes on.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the walk against the model to write.")] = None,
    json: Json = False,
) -> None:
    """Fit the physics of a floor plan to the readings of a walk, or to cloaked ones."""
    if write and target is not None:
        raise InputError("give either --write, which changes the site file, or --out with another file.")
    inputs = tuple(file for file in (path, walk, readings) if file is not None)
    site, wrong = load_site(path), False
    if from_store is not None:
        if walk is not None or readings is not None or plot is not None:
            raise InputError("--walk, --readings and --plot go with a walk: leave them out with --from-store.")
        changes = _from_store(site, path, from_store, (since, until), plan, kept, json=json)
    elif walk is None or readings is None:
        raise InputError("give --walk and --readings, or --from-store with the address of a collector's store.")
    else:
        if any(given is not None for given in (since, until, plan, kept)):
            raise InputError("--since, --until, --plan and --kept go with --from-store: leave them out with a walk.")
        changes, wrong = _from_walk(site, walk, readings, plot, inputs, json=json)
    text = path.read_text(encoding="utf-8")
    new = _new_text(site, text, changes)
    if write or target is not None:
        _write(new, target or path, inputs[1:] if write else inputs, wrong=wrong)
    else:
        if not json:
            _show(text, new, path)
        note("nothing is written: add --write to change the site file, or --out FILE for another one")
    if walk is not None:
        true = f"{readings} holds" if plot is None else f"{readings} and {plot} hold"
        note(
            f"{true} true readings, {walk} says where you were: keep them to yourself, delete them once the fit is good"
        )


def _from_walk(
    site: Site, walk: Path, readings: Path, plot: Path | None, inputs: tuple[Path, ...], *, json: bool
) -> tuple[Changes, bool]:
    """Return the changes to the site file, and whether the walk contradicts the model."""
    if plot is not None:
        check_picture(plot)
        refuse_input(plot, *inputs)
    with busy("fitting the model to the walk"):
        fit = fit_walk(site, read_walk(site, walk, readings))
    if plot is not None:
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
    if not fit.reach.told:
        raise InputError(
            f"the walk cannot tell the reach: {fit.reach} m. Stand at more spots, some near each sensor and some far "
            "from it, or longer.",
            reach=fit.reach,
        )
    with busy("covering the confidence region"):
        changes = _walk_changes(fit)
    _say_kept(site, changes)
    if json:
        as_json(_values(fit, changes))
    else:
        _report(fit, _tolerance(changes))
    return changes, fit.wrong


def _from_store(
    site: Site,
    path: Path,
    url: str,
    period: tuple[str | None, str | None],
    plan: Path | None,
    kept: Path | None,
    *,
    json: bool,
) -> Changes:
    from cloakwork.collect import StoredFrames, open_store  # noqa: PLC0415 - a walk needs no database

    if kept is not None:
        refuse_unwritable("--kept", kept, path, *site.files.values())
    since, until = parse_moment("--since", period[0]), parse_moment("--until", period[1])
    noise = planned_noise(site, path, plan)
    with open_store(url, make=False) as store:
        stored = StoredFrames(store, site, since, until, plan=noise.id)
        _ = stored.span  # refuses a period without readings
        frames = list(stored)
    if left_out := stored.problems.counts.get(OTHER_PLAN):
        note(f"{counted(left_out, 'reading')} made under another plan are left out")
    if len(frames) > MOST_FRAMES:
        note(f"the fit takes the last {MOST_FRAMES:,} of {len(frames):,} frames")
    keeping = noting_kept(kept, "The steps so far")
    with keeping, bar("fitting reach and strength over all paths") as progress:
        fit = fit_cloaked(site, noise.cloak, frames, progress=progress, kept=kept)
    told = fit.agree and fit.reach.told and fit.strength.told
    changes = _common_changes(fit) if told else {}
    _say_kept(site, changes)
    rows = [("reach", f"{fit.reach} m"), ("strength", str(fit.strength))]
    rows += [
        ("offset of the baselines", f"{fit.offset} {site.unit}".rstrip()),
        ("people", f"{fit.people:.2f} on average"),
    ]
    if json:
        found = {name: _interval(getattr(fit, name)) for name in ("reach", "strength", "offset")}
        covered = _tolerance(changes) if told else None
        as_json({"site": site.name, **found, "people": fit.people, "tolerance": covered, "told": told})
    else:
        table(
            f"{site.name}: fitted to {counted(fit.frames, 'cloaked frame')}, with 90 % intervals", ("", "value"), rows
        )
    if not fit.agree:
        ends = " and ".join(f"{reach:.3g} m with {strength:.3g}" for reach, strength in fit.ends)
        raise InputError(
            f"searches from different starts ended at different values of reach and strength: {ends}. These readings "
            "fit more than one physics: give another or a longer period, or walk.",
            ends=fit.ends,
        )
    if not told:
        raise InputError(
            "these readings cannot tell reach and strength well enough: an interval is wider than half its value. "
            "Give a longer period with people in it, or walk.",
            reach=fit.reach,
            strength=fit.strength,
        )
    return changes


def _walk_changes(fit: WalkFit) -> Changes:
    """The keys of the site file that a walk changes."""
    common: Changes = {("baseline",): rounded_baseline(float(fit.baselines.mean()))}
    return {
        **_common_changes(fit),
        **(common if "baseline" in fit.site.spec.model_fields_set else {}),
        ("physics", "footprint"): rounded(fit.footprint.value),
        **{("sensor", k, "baseline"): rounded_baseline(value) for k, value in enumerate(fit.baselines.tolist())},
    }


def _common_changes(fit: WalkFit | CloakedFit) -> Changes:
    """The keys that every fit changes; the strength unless the site states a range of them."""
    tolerance, ranged = fit.tolerance, isinstance(fit.site.spec.sources.strength, tuple)
    return {
        ("physics", "reach"): rounded(fit.reach.value),
        ("physics", "tolerance", "diffusion"): tolerance.diffusion,
        ("physics", "tolerance", "gain"): tolerance.gain,
        **({} if ranged else {("sources", "strength"): rounded(fit.strength.value)}),
    }


def _tolerance(changes: Changes) -> dict[str, float]:
    return {key: changes[("physics", "tolerance", key)] for key in ("diffusion", "gain")}


def _say_kept(site: Site, changes: Changes) -> None:
    """Say which stated errors stay, since the fit would do with less."""
    for name in ("diffusion", "gain"):
        stated = getattr(site.tolerance, name)
        if stated and changes.get(("physics", "tolerance", name)) == stated:
            note(f"{name} = {stated:g} under [physics.tolerance] stays: these readings would do with less")


def rounded_baseline(value: float) -> float:
    """A baseline as it is written, to a thousandth of the unit."""
    return round(value, 3)


def _new_text(site: Site, text: str, changes: Changes) -> str:
    if not site.spec.located and any(path[0] == "sensor" for path in changes):
        positions = site.physics.sensor_positions.tolist()  # type: ignore[attr-defined]
        text = listed_sensors(text, list(zip(site.sensor_ids, positions, strict=True)))
    return edited(text, changes)


def _show(old: str, new: str, path: Path) -> None:
    """Print what would change."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), "fitted", lineterm="", n=1)
    out.print("\n".join(lines))


def _write(text: str, target: Path, inputs: tuple[Path, ...], *, wrong: bool) -> None:
    with written(target, *inputs) as file:
        file.write(text)
    if wrong:
        note(f"wrote {target}, but do not plan with it: the model does not fit. Mend what is named, and walk again")
    else:
        note(f"wrote {target}; next: {program()} plan {target} --out {plan_beside(target)}")


def _report(fit: WalkFit, tolerance: dict[str, float]) -> None:
    unit = fit.site.unit
    rows = [
        ("reach", f"{fit.reach} m"),
        ("footprint", f"{fit.footprint} m"),
        ("strength", str(fit.strength)),
        ("noise of a reading", f"{fit.walk.noise.min():.3g} to {fit.walk.noise.max():.3g} {unit}".rstrip()),
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
        f"the model does not fit (p = {fit.p_value:.1g}): it is off by {percent(fit.misfit)} of the warmth, and the "
        "intervals above allow for that"
    )
    if fit.drifts:
        say("  the baselines drift during the walk: state [drift] in the site file, and calibrate again")
        return
    for name in [name for name in fit.bad_sensors() if name not in misplaced][:8]:
        say(f"  sensor {name} fits badly: check what is near it")
    for label in fit.bad_rooms()[:8]:
        say(f"  {label} fits badly: check its walls and doors, and for another source of heat")


def _values(fit: WalkFit, changes: Changes) -> dict[str, object]:
    return {
        "site": fit.site.name,
        **{name: _interval(getattr(fit, name)) for name in ("reach", "footprint", "strength")},
        "gains": dict(zip(fit.site.sensor_ids, fit.gains.tolist(), strict=True)),
        "baselines": dict(zip(fit.site.sensor_ids, fit.baselines.tolist(), strict=True)),
        "tolerance": _tolerance(changes),
        "p_value": fit.p_value,
        "fits": not fit.wrong,
        "misfit": fit.misfit,
        "misplaced": fit.misplaced(),
        "bad_sensors": fit.bad_sensors(),
        "bad_rooms": fit.bad_rooms(),
    }


def _interval(found: Fitted) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}
