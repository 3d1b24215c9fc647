"""Output of the commands: results go to standard output, everything else to standard error, so pipes stay clean."""

import json
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event, Thread
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cloakwork.errors import InputError

FIRST_S, AGAIN_S = 1.5, 10.0  # of silence without a terminal, after which work is named, and named again


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # main() ends quietly


out = _Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = _Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def say(text: object) -> None:
    """Print lines of a result, wrapped to the width of a terminal."""
    out.print(_wrapped(str(text), out))


def note(text: object) -> None:
    """Print a note to standard error."""
    err.print(_wrapped(str(text), err))


def left_out(reasons: Counter[str], rows: int) -> list[str]:
    """How many of so many rows were not used, and why; nothing if all were."""
    shown = "; ".join(f"{number:,} {reason}" for reason, number in reasons.most_common())
    return [f"{reasons.total():,} of {rows:,} rows left out: {shown}"] if shown else []


def stop_signal() -> Event:
    """An event that is set when the program is asked to stop; an exception could be raised where it is lost."""
    stopping = Event()
    for number in (SIGTERM, SIGINT):
        signal(number, lambda *_: stopping.set())
    return stopping


def _wrapped(text: str, console: Console) -> str:
    if not console.is_terminal:
        return text
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip(" -")))
        lines.append(
            textwrap.fill(
                line, max(console.width, 40), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
        )
    return "\n".join(lines)


def program() -> str:
    """The command that calls this program: its name if that is on the path, otherwise as it was called."""
    called = Path(sys.argv[0])
    return "cloakwork" if called.name != "cloakwork" or shutil.which("cloakwork") else str(called)


def counted(number: int, thing: str) -> str:
    """A number with its noun: 1 frame, 2 frames."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


@contextmanager
def written(path: Path, *inputs: Path, mode: int = 0o666) -> Iterator[TextIOWrapper]:
    """Write a text file that gets its name only when complete, and never replaces an input.

    `mode` holds from the first byte on, less the system's umask.
    """
    old = path.is_file()
    with part_of(path, *inputs) as part:
        # "x" creates a new file or fails: it does not follow a planted link
        opener, special = partial(os.open, mode=mode), part == path.resolve()
        with open(part, "w" if special else "x", newline="", encoding="utf-8", opener=opener) as file:
            yield file
    if old:
        note(f"overwrote {path}")


@contextmanager
def part_of(path: Path, *inputs: Path) -> Iterator[Path]:
    """A temporary name for a file, which gets its own when complete; never replaces an input."""
    refuse_input(path, *inputs)
    target = _file(str(path), path)
    if is_special(target):  # written to directly
        yield target
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(target)


def refuse_input(path: Path, *inputs: Path) -> None:
    """Refuse to overwrite an input, also one that is yet to be made."""
    for source in inputs:
        same = path.samefile(source) if path.exists() and source.exists() else path.resolve() == source.resolve()
        if same:
            raise InputError(f"{path} is an input of this command: write to another file.", path=str(path))


def check_picture(path: Path) -> None:
    """Refuse a name that is not a picture's, and to draw without Matplotlib, before the work and not after it."""
    if path.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise InputError(f"{path}: a picture is a .png, .svg or .pdf file.")
    import_module("matplotlib")


def refuse_unwritable(option: str, path: Path, *inputs: Path) -> None:
    """Refuse a file that cannot be written or is an input, before the work and not after it."""
    refuse_input(path, *inputs)
    target = _file(f"{option} {path}", path)
    if is_special(target):
        return  # a trial would disturb it
    trial = target.with_name(f".{target.name}.{os.getpid()}.part")  # its name until it is complete
    try:
        trial.touch(exist_ok=False)
        trial.unlink()
    except OSError as problem:
        raise InputError(f"{option} {path}: cannot be written ({problem.strerror}).", path=str(path)) from None


def _file(named: str, path: Path) -> Path:
    """The resolved path of a file in an existing folder."""
    target = path.resolve()
    if target.is_dir():
        raise InputError(f"{named}: this is a folder. Give a file in it.", path=str(path))
    if not target.parent.is_dir():
        raise InputError(f"{named}: there is no folder {path.parent}. Create it first.", path=str(path))
    return target


def is_special(path: Path) -> bool:
    """Whether the path is a pipe or a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def form_of(path: Path) -> str:
    """The form in which a table is written: what the name ends in, and CSV for a pipe or a device."""
    return ".csv" if is_special(path) else path.suffix.lower()


def is_folder(path: Path) -> bool:
    """Whether --out names a folder, to be filled with finished parts."""
    return path.is_dir() or not (path.suffix or path.exists())


def print_json(values: Mapping[str, object]) -> None:
    """Print one JSON object, and nothing else, on standard output."""
    out.out(json.dumps(_plain(values), indent=2, allow_nan=False), highlight=False)


def _plain(value: Any) -> Any:
    """What JSON can hold: dataclasses become objects, arrays become lists, and a number that is not finite null."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not isfinite(value) else value


class Show(Protocol):
    """Shows the amount done, of `total` if that is given."""

    def __call__(self, done: float, total: float | None = None, /) -> None: ...


@contextmanager
def working(title: str, total: float = 1, *, stopped: str = "") -> Iterator[Show]:
    """Show on standard error that work goes on, and how much is done once that is reported.

    On a terminal this is a bar, which vanishes at the end; elsewhere a line now and then if the work takes a while. If
    it is interrupted, `stopped` says what has become of it.
    """
    try:
        if err.is_terminal:
            with progress_bars() as bars:
                task = bars.add_task(title, total=None)
                yield lambda done, of=None: bars.update(task, completed=done, total=of or max(total, 1))
        else:
            with _lines(title, total) as show:
                yield show
    except KeyboardInterrupt:
        if stopped:
            note(stopped)
        raise


@contextmanager
def _lines(title: str, total: float) -> Iterator[Show]:
    """Name work that takes a while, and name it again now and then."""
    ended, share = Event(), ""

    def show(done: float, of: float | None = None) -> None:
        nonlocal share
        share = f" {100 * done / (of or max(total, 1)):.0f} %"

    def tell() -> None:
        wait = FIRST_S
        while not ended.wait(wait):
            note(f"{title} ...{share}")
            wait = AGAIN_S

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield show
    finally:
        ended.set()
        thread.join()


def progress_bars() -> Progress:
    """Bars on standard error, none without a terminal, which vanish at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def shown_place(at: object) -> str:
    """A place as text: a name, or coordinates to four digits."""
    if isinstance(at, tuple):
        return "(" + ", ".join(shown_place(value) for value in at) + ")"
    return f"{at:.4g}" if isinstance(at, float) else str(at)
