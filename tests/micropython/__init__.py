"""Run programs on MicroPython (WebAssembly under Node) with files, a real disk and a real connection."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import cloakwork
from tests.parts import needs, program

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


def copy_sensor(folder: Path) -> None:
    """Put the device's modules into lib/ of a folder, as provisioning does."""
    package = folder / "lib" / "cloakwork"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    source = Path(cloakwork.__file__).parent / "sensor"
    shutil.copytree(source, package / "sensor", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def command(
    file: Path,
    *,
    folder: Path | None = None,
    disk: Path | None = None,
    args: Mapping[str, object] | None = None,
) -> list[str]:
    """The command line that runs a program on MicroPython; run.mjs documents the options."""
    needs("micropython")
    node = program("node")
    assert node is not None
    command = [node, str(HERE / "run.mjs")]
    for name, value in (("folder", folder), ("disk", disk)):
        if value is not None:
            command += [f"--{name}", str(value)]
    return [*command, "--args", json.dumps(dict(args or {})), str(file)]


def run(
    file: Path,
    *,
    folder: Path | None = None,
    disk: Path | None = None,
    args: Mapping[str, object] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    line = command(file, folder=folder, disk=disk, args=args)
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False)


def start(
    file: Path, *, folder: Path | None = None, disk: Path | None = None, args: Mapping[str, object] | None = None
) -> subprocess.Popen[str]:
    """Start a program and leave it running: read its stdout, and kill() it for a power cut."""
    line = command(file, folder=folder, disk=disk, args=args)
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
