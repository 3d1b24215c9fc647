"""Files that survive a power cut, and strict JSON."""

import os
import secrets
import shutil
import time
from contextlib import suppress
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

ABANDONED_S = 60.0  # after which no one writes a part any more


def unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The hook of a JSON reader that refuses a key given twice, which two readers could understand differently."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key is given twice")
    return entries


def new_part(target: Path) -> Path:
    """Return the name under which a file or folder is written first; removes parts that power cuts left behind."""
    for left in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 16}.part"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - ABANDONED_S:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")


def write_durably(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace a file as a whole; `mode` is that of a new file, before the umask.

    The file survives a power cut once this returns: its bytes are on disk before its name points to them, and its name
    before the caller goes on. Parts that earlier power cuts left behind are removed. Of several writers at once the
    last one wins.
    """
    target = path.resolve()
    part = new_part(target)
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
