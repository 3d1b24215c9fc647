"""The frozen plan, as commands write and use it."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from cloakwork.cli.files import refuse_input
from cloakwork.cli.output import counted, note, working
from cloakwork.errors import InputError, SiteError
from cloakwork.privacy import Cloak
from cloakwork.site import (
    BitPlan,
    BitSite,
    FrozenPlan,
    Plan,
    Site,
    load_any_plan,
    load_plan,
    locate,
    oddities,
    plan_beside,
)

SHOWN = 12  # characters of a digest
CHECKING = "checking that the plan fits the site"


@dataclass(frozen=True, eq=False)
class PlannedNoise:
    """The cloak of a site, with the plan that it comes from, if any."""

    cloak: Cloak
    plan: Plan | None

    @property
    def digest(self) -> str | None:
        """Digest of the plan."""
        return None if self.plan is None else self.plan.digest

    @property
    def id(self) -> str:
        """Id of the plan, by which readings name it; empty without one."""
        return "" if self.plan is None else self.plan.id


def planned_noise(site: Site, site_file: Path, plan_file: Path | None) -> PlannedNoise:
    """The noise of the given plan or of the plan next to the site file; without either, calibrate it now."""
    beside = plan_beside(site_file)
    file = plan_file or (beside if beside.is_file() else None)
    if file is None:
        with working(planning(site)):
            return PlannedNoise(site.cloak(), None)
    plan = load_plan(file)
    with working(CHECKING):
        cloak = plan.cloak(site, file=file)
    note(f"using the noise of plan {file} ({plan.digest[:SHOWN]})")
    return PlannedNoise(cloak, plan)


def checked_plan(site: Site | BitSite, path: Path, file: Path) -> Plan | BitPlan:
    """The plan of a site, which fits it as it is now."""
    if not file.is_file():
        raise InputError(
            f"{file}: there is no frozen plan yet. Write one with: "
            f"cloakwork plan {shlex.quote(str(path))} --out {shlex.quote(str(file))}",
            path=str(path),
        )
    plan = load_any_plan(file)
    with working(CHECKING):
        plan.check(site, file=file)
    return plan


def write_plan(plan: FrozenPlan, out: Path, *inputs: Path) -> None:
    """Write a plan; keep a copy of the one that it replaces, which the readings made under it still need."""
    refuse_input(out, *inputs)
    try:
        old = load_any_plan(out) if out.is_file() else None
    except SiteError:
        raise InputError(
            f"{out} exists and is not a plan: give another name, or move it away.", path=str(out)
        ) from None
    replaced = ""
    if old is not None and old.digest != plan.digest:
        kept = out.with_name(f"{out.stem}.{old.digest[:SHOWN]}{out.suffix}")
        old.write(kept)
        replaced = (
            f"it replaces plan {old.digest[:SHOWN]}: provision all devices of that plan again. The old plan is kept as "
            f"{kept}, for readings made under it"
        )
    plan.write(out)
    note(f"wrote the plan {plan.digest[:SHOWN]} to {out}")
    if replaced:
        note(replaced)


def refuse_impossible(site: Site | BitSite, path: Path, *, noting: bool = True) -> None:
    """Refuse a site file with numbers that cannot be meant; note what is odd, with its line, unless a report does."""
    found, text = () if isinstance(site, BitSite) else oddities(site), path.read_text(encoding="utf-8")
    lines = [f"{path}, line {locate(text, advice.key)}: {advice}" for advice in found]
    impossible = [line for line, advice in zip(lines, found, strict=True) if advice.impossible]
    if impossible:
        raise SiteError("\n".join(impossible), path=str(path), keys=tuple(advice.key for advice in found))
    for line in lines if noting else ():
        note(f"warning: {line}")


def planning(site: Site) -> str:
    """Status text while the noise of a site is calibrated."""
    return f"planning the noise of {counted(site.physics.sensors, 'sensor')}"
