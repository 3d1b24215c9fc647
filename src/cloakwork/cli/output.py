"""Streams of the commands: results go to standard output, everything else to standard error, so pipes stay clean."""

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event, Thread
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

FIRST_S, AGAIN_S = 1.5, 10.0  # of silence without a terminal, after which work is named, and named again
NARROWEST, WIDEST = 60, 150
UNLIMITED = 10_000  # the width for a program that reads the output: a row in a line


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # main() ends quietly


out = _Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = _Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def width(console: Console) -> int:
    """How wide lines may be."""
    return min(max(console.width, NARROWEST), WIDEST) if console.is_terminal else UNLIMITED


def wrapped(text: str, most: int) -> list[str]:
    """Lines of at most this width; a list item or an indented line continues under its text."""
    lines = []
    for line in text.splitlines() or [""]:
        hang = " " * (len(line) - len(line.lstrip(" -")))
        look = {"subsequent_indent": hang, "break_long_words": False, "break_on_hyphens": False}
        lines += textwrap.wrap(line, most, **look) or [""]  # type: ignore[arg-type]
    return lines


def note(text: object) -> None:
    """Print a note to standard error."""
    err.print("\n".join(wrapped(str(text), width(err))))


def left_out(reasons: Counter[str], rows: int) -> list[str]:
    """How many of so many rows were not used, and why; nothing if all were."""
    shown = "; ".join(f"{number:,} {reason}" for reason, number in reasons.most_common())
    return [f"{reasons.total():,} of {rows:,} rows left out: {shown}"] if shown else []


def counted(number: int, thing: str) -> str:
    """A number with its noun: 1 frame, 2 frames."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def stop_signal() -> Event:
    """An event that is set when the program is asked to stop; an exception could be raised where it is lost."""
    stopping = Event()
    for number in (SIGTERM, SIGINT):
        signal(number, lambda *_: stopping.set())
    return stopping


def program() -> str:
    """The command that calls this program: its name if that is on the path, otherwise as it was called."""
    called = Path(sys.argv[0])
    return "cloakwork" if called.name != "cloakwork" or shutil.which("cloakwork") else str(called)


def print_json(values: Mapping[str, object]) -> None:
    """Print one JSON object, and nothing else, on standard output."""
    out.out(json.dumps(_plain(values), indent=2, allow_nan=False), highlight=False)


def _plain(value: Any) -> Any:
    """What JSON can hold: dataclasses become objects, arrays lists, paths texts, and what is not finite null."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not isfinite(value) else value


class Show(Protocol):
    """Shows the amount done, of `total` if that is given."""

    def __call__(self, done: float, total: float | None = None, /) -> None: ...


@contextmanager
def working(title: str, total: float = 1, *, stopped: str = "") -> Iterator[Show]:
    """Show on standard error that work continues, and how much is done once that is reported.

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
