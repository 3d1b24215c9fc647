"""`cloakwork plan`: what a site hides, from whom, and how good its map is; `--sweep` compares settings."""

from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import PICTURES, Json, SiteFile, option, writes
from cloakwork.cli.output import working
from cloakwork.errors import InputError

SWEEP = "With --sweep"


def plan(
    path: SiteFile,
    details: Annotated[bool, option("Print assumptions, costs and longer times.", "--details")] = False,
    no_simulation: Annotated[
        bool, option("Do not simulate people, which takes a minute or two.", "--no-simulation")
    ] = False,
    out: Annotated[
        Path | None, option("Freeze the plan: write it for devices.", metavar="FILE", callback=writes())
    ] = None,
    picture: Annotated[
        Path | None, option("Draw rooms, doors, zones and sensors.", metavar="FILE", callback=writes(*PICTURES))
    ] = None,
    compare: Annotated[bool, option("Instead, simulate people at many settings and compare.", "--sweep")] = False,
    json: Json = False,
    tried: Annotated[
        list[str] | None,
        option(
            "Compare epsilon=1,2,4, alpha=..., readings=..., sensors=... or resolution=...; repeat for more.",
            "--try",
            metavar="NAME=LIST",
            panel=SWEEP,
        ),
    ] = None,
    need: Annotated[
        list[str] | None, option('Quality to reach: "room 95%" or "count 90% live".', metavar="TEXT", panel=SWEEP)
    ] = None,
    frames: Annotated[int | None, option("Frames of each simulation, at least 24.", metavar="N", panel=SWEEP)] = None,
) -> None:
    """Print the plan of a site and write it to a file, or compare settings."""
    if not compare and (tried or need or frames is not None):
        raise InputError("--try, --need and --frames go with --sweep: add --sweep.")
    if compare and (out is not None or picture is not None):
        raise InputError("--sweep with --out or --picture: change the site file first, then write or draw its plan.")
    with working("loading the library"):
        from cloakwork.cli import plan_report  # noqa: PLC0415 - help and refused options need no library
        from cloakwork.cli.planned_noise import refuse_impossible  # noqa: PLC0415
        from cloakwork.site import BitSite, load_any_site  # noqa: PLC0415

        site = load_any_site(path)
    refuse_impossible(site, path, noting=False)
    if isinstance(site, BitSite):
        if compare or picture is not None:
            raise InputError("--sweep and --picture need a map, and bits have none. Leave them out.")
        plan_report.plan_bits(site, path, out, details=details, json=json)
    elif compare:
        from cloakwork.cli.sweep import sweep  # noqa: PLC0415

        sweep(site, tried=tried or (), need=need or (), frames=frames, json=json)
    else:
        plan_report.plan_site(site, path, out, picture=picture, simulate=not no_simulation, details=details, json=json)
