"""Where text goes: results to standard output, everything else to standard error, so that pipes stay clean."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # main() ends quietly; whoever read our output has seen enough


out = _Console(highlight=False, soft_wrap=True)
err = _Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: object) -> None:
    """A line of result."""
    out.print(str(text), markup=False)


def note(text: object) -> None:
    """A line about the work, to standard error."""
    err.print(str(text), markup=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that reads well without colour."""
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        drawn.add_row(*row)
    out.print(drawn)


def as_json(values: Mapping[str, object]) -> None:
    """One JSON object, and nothing else, on standard output."""
    out.out(json.dumps(values, indent=2, allow_nan=False, default=_plain), highlight=False)


def _plain(value: object) -> object:
    convert = getattr(value, "tolist", None)
    if convert is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return convert()


def busy(title: str) -> AbstractContextManager[object]:
    """Something that moves on standard error while work of unknown length goes on (nothing without a terminal)."""
    return err.status(f"{title} ...") if err.is_terminal else nullcontext()


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error (nothing when that is not a terminal); call it with the amount done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(title, total=max(total, 1))
        yield lambda done: progress.update(task, completed=done)
