"""Programs that some tests need and pip cannot install: without them those tests are skipped, in CI they fail."""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ROOT / ".parts" / "node_modules"
MANIFEST = ROOT / "tests" / "package.json"
MICROPYTHON = "@micropython/micropython-webassembly-pyscript"
AXE = "axe-core"
_MISSING = " missing: run `sudo scripts/install-parts`"


def program(name: str) -> str | None:
    """Where a program is; servers live where a person's PATH does not look."""
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])
    )


def node_package(name: str) -> Path | None:
    """Where a Node package is, in exactly the version that the tests are written for."""
    wanted: dict[str, str] = json.loads(MANIFEST.read_text(encoding="utf-8"))["dependencies"]
    found = PACKAGES / name / "package.json"
    if not found.exists() or json.loads(found.read_text(encoding="utf-8"))["version"] != wanted[name]:
        return None
    return found.parent


def micropython() -> Path | None:
    """Where MicroPython's JavaScript module is."""
    folder = node_package(MICROPYTHON)
    return None if folder is None else folder / "micropython.mjs"


def postgresql() -> Path | None:
    """The folder with the programs of the newest PostgreSQL server; Debian has a folder for each version."""
    own = program("postgres")
    found = [Path(own).resolve().parent] if own is not None else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    return next((folder for folder in found if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _version(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def has(part: str) -> bool:
    if part == "micropython":
        return program("node") is not None and micropython() is not None
    if part == AXE:
        return node_package(AXE) is not None
    if part == "postgresql":
        return postgresql() is not None
    return program(part) is not None


def needs(*parts: str) -> None:
    """Call in a fixture or a test: skips it, or fails it in CI, unless all `parts` are installed."""
    gone = [part for part in parts if not has(part)]
    if not gone:
        return
    reason = ", ".join(gone) + _MISSING
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def named_in(reasons: Iterable[str]) -> set[str]:
    """The parts that are named in reasons to skip a test."""
    found = (reason.partition(_MISSING) for reason in reasons)
    return {part for names, said, _ in found if said for part in names.rpartition(": ")[2].split(", ")}
