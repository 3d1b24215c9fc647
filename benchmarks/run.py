"""Run all benchmarks, or those named: python -m benchmarks.run [recovery noise accuracy ...]."""

import sys
import time

from rich.console import Console

from benchmarks import (
    accuracy,
    alarms,
    attacker,
    auditing,
    auditors,
    building,
    calibration,
    collector,
    contacts,
    default_flat,
    design,
    distances,
    drift,
    drift_design,
    following,
    gpu,
    installing,
    keyed,
    networks,
    noise,
    page,
    people,
    recorded_people,
    recovery,
    remembering,
    series,
    series_errors,
    series_people,
    site_audit,
    start,
    timing,
    tracking,
    transport,
    zones,
)
from benchmarks.memory import reset_peak
from cloakwork._compile import avoid_gathers

ALL = {
    "start": start.run,
    "recovery": recovery.run,
    "noise": noise.run,
    "keyed": keyed.run,
    "timing": timing.run,
    "transport": transport.run,
    "accuracy": accuracy.run,
    "calibration": calibration.run,
    "default_flat": default_flat.run,
    "design": design.run,
    "remembering": remembering.run,
    "building": building.run,
    "people": people.run,
    "tracking": tracking.run,
    "attacker": attacker.run,
    "alarms": alarms.run,
    "drift": drift.run,
    "drift-design": drift_design.run,
    "installing": installing.run,
    "recorded-people": recorded_people.run,
    "collector": collector.run,
    "collectors": collector.run_group,
    "collector-building": collector.run_building,
    "page": page.run,
    "following": following.run,
    "gpu": gpu.run,
    "networks": networks.run,
    "networks-hubs": networks.run_hubs,
    "networks-walk": networks.run_walk,
    "networks-origins": networks.run_origins,
    "zones": zones.run,
    "auditing": auditing.run,
    "auditors": auditors.run,
    "site-audit": site_audit.run,
    "contacts": contacts.run,
    "distances": distances.run,
    "series": series.run,
    "series-errors": series_errors.run,
    "series-people": series_people.run,
}


def main() -> int:
    """Print one table after the other; 1 if a goal was missed or a benchmark failed."""
    avoid_gathers()
    console = Console(width=160, highlight=False)
    chosen = [name for name in sys.argv[1:] if not name.isdecimal()] or list(ALL)
    if unknown := [name for name in chosen if name not in ALL]:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(ALL)}")
    missed = []
    for name in chosen:
        console.print(f"running {name} ...", style="dim")
        reset_peak()
        begun = time.monotonic()
        try:
            table, met = ALL[name]()
            console.print(table)
        except Exception:  # the later tables must not be lost
            console.print_exception()
            met = False
        console.print(f"{name} took {time.monotonic() - begun:.0f} s", style="dim")
        if not met:
            missed.append(name)
    console.print(f"Goals were MISSED in: {', '.join(missed)}." if missed else "All goals met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
