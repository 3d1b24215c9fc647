"""The frozen plan, as commands write and use it."""

from dataclasses import dataclass
from pathlib import Path

from cloakwork.cli.output import busy, counted, note, refuse_input
from cloakwork.errors import InputError, SiteError
from cloakwork.physics import Family
from cloakwork.privacy import Cloak, Design
from cloakwork.site import Plan, Site, load_plan, plan_beside

SHOWN = 12  # characters of a digest


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of a site, and the file of the plan that it was read from, if any."""

    cloak: Cloak
    plan: Plan | None
    file: Path | None

    @property
    def digest(self) -> str | None:
        """Digest of the plan."""
        return None if self.plan is None else self.plan.digest

    @property
    def files(self) -> tuple[Path, ...]:
        """What was read, and must not be written over."""
        return () if self.file is None else (self.file,)


def noise_of(site: Site, path: Path, given: Path | None) -> Noise:
    """The noise of the given plan, or of the plan beside the site file; worked out anew where there is neither."""
    beside = plan_beside(path)
    file = given or (beside if beside.is_file() else None)
    if file is None:
        with busy(planning(site)):
            return Noise(site.cloak(), None, None)
    plan = load_plan(file)
    cloak = plan.cloak(site, file=file)
    note(f"with the noise of the plan {file} ({plan.digest[:SHOWN]})")
    return Noise(cloak, plan, file)


def write_plan(plan: Plan, out: Path, *inputs: Path) -> None:
    """Write a plan; one that it takes the place of is kept, for only that one fits the readings made under it."""
    refuse_input(out, *inputs)
    try:
        old = load_plan(out) if out.is_file() else None
    except SiteError:
        advice = "give another name, or move it away"
        raise InputError(f"{out} is there, and is no plan: {advice}.", path=str(out)) from None
    kept = None
    if old is not None and old.digest != plan.digest:
        kept = out.with_name(f"{out.stem}.{old.digest[:SHOWN]}{out.suffix}")
        old.write(kept)
    plan.write(out)
    note(f"wrote the plan {plan.digest[:SHOWN]} to {out}")
    if old is not None and kept is not None:
        note(
            f"it takes the place of the plan {old.digest[:SHOWN]}: provision the devices again that were provisioned "
            f"under that one. It is kept as {kept}, for the readings that they made"
        )


def planning(site: Site) -> str:
    """What to say while the noise of a site is worked out."""
    models = counted(len(Family(site.physics, site.tolerance).members), "model")
    if Design(site.spec.privacy.design) is Design.EQUAL:
        return f"planning the noise over {models}"
    return f"sharing the noise among {counted(site.physics.sensors, 'sensor')} over {models}"
