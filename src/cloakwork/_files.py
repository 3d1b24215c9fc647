"""Files that survive a power cut, JSON, and results that are kept so that long work can go on after an interruption."""

import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any, Generic, TypeVar

from cloakwork.errors import InputError

T = TypeVar("T")
ABANDONED_S = 60.0  # after which no one writes a part any more


def unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The hook of a JSON reader that refuses a key given twice, which two readers could understand differently."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key is given twice")
    return entries


def write_durably(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace a file as a whole; `mode` is that of a new file, before the umask.

    The file survives a power cut once this returns: its bytes are on disk before its name points to them, and its name
    before the caller goes on. Parts that earlier power cuts left behind are removed. Of several writers at once the
    last one wins.
    """
    target = path.resolve()
    for left in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 16}.part"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - ABANDONED_S:
                left.unlink()
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class KeptResults(Generic[T]):
    """Results by their names: a line of JSON each, with the keys `name` and `value`, written as soon as it is there.

    A last line that was cut off does not count. `read` makes a result of what the file holds, and `refusal` says what
    is wrong with another file. Only its owner can read a new file.
    """

    def __init__(self, path: Path, name: str, value: str, read: Callable[[Any], T], refusal: str) -> None:
        self._path, self._name, self._value = path, name, value
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            whole = _whole_lines(text, f'{{"{name}": "')
            lines = [json.loads(line) for line in whole.splitlines()]
            self.known = {str(line[name]): read(line[value]) for line in lines}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise InputError(f"{path}: {refusal}", path=str(path)) from problem
        if whole != text:
            path.write_text(whole, encoding="utf-8")

    def add(self, name: str, result: T, value: object) -> None:
        """Keep a result, in the file as `value`."""
        self.known[name] = result
        with open(self._path, "a", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(json.dumps({self._name: name, self._value: value}) + "\n")


def _whole_lines(text: str, begins: str) -> str:
    """The text without a last line that was cut off; that line has to begin as all do."""
    whole = text[: text.rfind("\n") + 1]
    torn = text[len(whole) :]
    if torn[: len(begins)] != begins[: len(torn)]:
        raise ValueError("the last line is of another file")
    return whole
