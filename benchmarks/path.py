"""The way of a file through `cloakwork series`, until its cloak is made: modules, returns to a module, and names.

A return is a call into a module that the way had left. Names are functions and classes; methods such as `__init__`
count as their class. The start of the command line and its output are left out.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import FrameType

import cloakwork

PACKAGE = Path(cloakwork.__file__).parent
START = datetime(2026, 10, 5, tzinfo=UTC)
OUTSIDE = {"cli/app", "cli/output"}
LOADED = ("cloakwork.cli.series", "cloakwork.series", "pyarrow.csv", "pyarrow.parquet", "scipy.signal")
CASES = {
    "events with persons": "events.csv --person card --most-per-person 4 --from 2026-10-05 --to 2026-10-07",
    "counts": "counts.csv --counts n --contribution 3 --every 15m --from 2026-10-05 --to 2026-10-05T15:00",
}


def write_inputs(folder: Path) -> None:
    """Write a file of events, and one of counts in which a row is missing."""
    events = [f"{(START + timedelta(minutes=7 * k)).isoformat()},c{k * k % 31}" for k in range(400)]
    counts = [f"{(START + timedelta(minutes=15 * k)).isoformat()},{k % 7}" for k in range(60) if k != 5]
    (folder / "events.csv").write_text("\n".join(["time,card", *events, ""]))
    (folder / "counts.csv").write_text("\n".join(["time,n", *counts, ""]))


def calls_of(command: Callable[[], object]) -> list[tuple[str, str]]:
    """Module and name of each call, from the command's own function until the cloak is made."""
    calls: list[tuple[str, str]] = []

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)) or code.co_name.startswith("<"):
            return
        name = code.co_qualname.split(".<locals>")[0]
        calls.append((str(Path(code.co_filename).relative_to(PACKAGE).with_suffix("")), name))

    sys.setprofile(record)
    try:
        command()
    finally:
        sys.setprofile(None)
    first, last = calls.index(("cli/series", "series")), calls.index(("series/series_cloak", "SeriesCloak.__init__"))
    return [(module, name) for module, name in calls[first:last] if module not in OUTSIDE]


def returns(modules: list[str]) -> int:
    """How often the way enters a module that it had left."""
    visits = [module for k, module in enumerate(modules) if k == 0 or module != modules[k - 1]]
    return len(visits) - len(set(visits))


def main() -> None:
    """Print the figures; `-v` also lists the names in the order of the way."""
    for name in LOADED:  # module bodies are not on the way
        import_module(name)
    command = import_module("cloakwork.cli.app").app
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        os.chdir(folder)
        for title, options in CASES.items():
            words = ["series", *options.split(), "--filter", "window:1"]
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                calls = calls_of(lambda words=words: command(words, standalone_mode=False))  # type: ignore[misc]
            modules = [module for module, _ in calls]
            names = dict.fromkeys((module, name.removesuffix(".__init__")) for module, name in calls)
            special = [name for name in names if name[1].split(".")[-1].startswith("__")]
            print(
                f"{title}: {len(set(modules))} modules, {returns(modules)} returns, {len(names) - len(special)} names"
            )
            if "-v" in sys.argv:
                print(*(f"  {module}  {name}" for module, name in names), sep="\n")
        os.chdir(PACKAGE)


if __name__ == "__main__":
    main()
