"""Files that commands write: each gets its name only when it is complete, and none replaces an input."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from cloakwork.cli.output import note
from cloakwork.errors import InputError


@contextmanager
def written(path: Path, *inputs: Path, mode: int = 0o666) -> Iterator[TextIOWrapper]:
    """Write a text file whole or not at all; `inputs` are files that no option names.

    `mode` holds from the first byte on, less the system's umask.
    """
    refuse_input(path, *inputs)
    old = path.is_file()
    with part_of(path) as part:
        # "x" creates a new file or fails: it does not follow a planted link
        opener, special = partial(os.open, mode=mode), part == path.resolve()
        with open(part, "w" if special else "x", newline="", encoding="utf-8", opener=opener) as file:
            yield file
    if old:
        note(f"overwrote {path}")


@contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """A temporary name for a file, which gets its own when complete; a pipe or a device is written to directly."""
    target = path.resolve()
    if is_special(target):
        yield target
        return
    part = _part(target)
    try:
        yield part
        part.replace(target)
    except BaseException as problem:
        if isinstance(problem, OSError) and str(problem.filename) == str(part):
            problem.filename = str(path)  # the name that the person gave
        part.unlink(missing_ok=True)
        raise


def _part(target: Path) -> Path:
    # not the process id: in a container each run has the same, and would find what a killed one left
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")


def refuse_input(path: Path, *inputs: Path) -> None:
    """Refuse to overwrite an input, even one that does not exist yet."""
    for source in inputs:
        same = path.samefile(source) if path.exists() and source.exists() else path.resolve() == source.resolve()
        if same:
            raise InputError(
                f"{path} is an input of this command, or another output: write to another file.", path=str(path)
            )


def refuse_unwritable(option: str, path: Path) -> None:
    """Refuse a file that cannot be written, before the work and not after it."""
    target = path.resolve()
    if target.is_dir():
        raise InputError(f"{option} {path}: this is a folder. Give a file in it.", path=str(path))
    if not target.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}. Create it first.", path=str(path))
    if is_special(target):
        return  # a trial would disturb it
    trial = _part(target)
    try:
        trial.touch(exist_ok=False)
        trial.unlink()
    except OSError as problem:
        raise InputError(f"{option} {path}: cannot be written ({problem.strerror}).", path=str(path)) from None


def is_special(path: Path) -> bool:
    """Whether the path is a pipe or a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_folder(path: Path) -> bool:
    """Whether --out names a folder, to be filled with finished parts."""
    return path.is_dir() or not (path.suffix or path.exists())


def form_of(path: Path) -> str:
    """The form in which a table is written: what the name ends in, and CSV for a pipe or a device."""
    return ".csv" if is_special(path) else path.suffix.lower()
