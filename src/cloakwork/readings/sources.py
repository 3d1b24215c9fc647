"""Where rows come from, and their texts as codes: what needs no library that reads tables."""

import os
from dataclasses import dataclass
from pathlib import Path

from cloakwork._checks import IntArray
from cloakwork.errors import InputError, ReadingError


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts as codes: row k holds `labels[codes[k]]`. Labels are unique."""

    codes: IntArray
    labels: tuple[str, ...]


def as_source(source: object) -> object:
    """A file as a path, a table as it is; nothing else is a source of rows."""
    if isinstance(source, str | os.PathLike):
        return Path(source)
    if not hasattr(source, "__arrow_c_stream__"):
        kind = type(source).__name__
        raise InputError(f"{kind}: give a file, or a table of Arrow, pandas or Polars (not a lazy one).", type=kind)
    return source


def path_of(source: object) -> Path:
    """The path of a file; for a table, its name in messages."""
    return source if isinstance(source, Path) else Path("the table")


def size_of(source: object) -> int:
    """The bytes of a file, 0 for a table; refuses a folder and what is not there."""
    if not isinstance(source, Path):
        return 0
    try:
        if source.is_dir():
            raise ReadingError(f"{source}: a folder. Name the files in it.", path=str(source))
        return source.stat().st_size
    except OSError as problem:
        raise ReadingError(f"{source}: {problem.strerror}.", path=str(source)) from None
