"""Changes of numbers in the text of a site file, which keeps its comments and layout."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from cloakwork.errors import SiteError
from cloakwork.site.site_file import KeyPath, key_lines

_VALUE = re.compile(r"^([^=]*=\s*)([^#\n]*?)(\s*)(#.*)?$")


def edited(text: str, changes: Mapping[KeyPath, float]) -> str:
    r"""Return the text of a site file with other numbers; a key that is not there is added to its table.

    Comments stay, except those that call the old number a guess.

    >>> print(edited('[physics]\nreach = 2.0   # in metres\n', {("physics", "reach"): 1.5}), end="")
    [physics]
    reach = 1.5   # in metres
    """
    changed = text if text.endswith("\n") or not text else text + "\n"
    for path, value in changes.items():
        changed = _with(changed, path, f"{value:.12g}")
    expected = tomllib.loads(text)
    for path, value in changes.items():
        _set(expected, path, float(f"{value:.12g}"))
    return _checked(changed, expected, changes)


def listed_sensors(text: str, sensors: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return the text with a [[sensor]] table for each of (id, position) in place of `sensors = N`."""
    line = key_lines(text).get(("sensors",))
    if line is None:
        raise SiteError("the site file lists its sensors already.", key="sensors")
    lines = text.splitlines()
    lines[line - 1] = "# the sensors are at the end of this file"
    tables = [f'\n[[sensor]]\nid = "{name}"\nat = [{at[0]:g}, {at[1]:g}]' for name, at in sensors]
    expected = tomllib.loads(text)
    del expected["sensors"]
    expected["sensor"] = [{"id": name, "at": [float(f"{value:g}") for value in at]} for name, at in sensors]
    return _checked("\n".join([*lines, *tables]) + "\n", expected, {("sensors",): 0.0})


def _checked(text: str, expected: dict[str, Any], changes: Mapping[KeyPath, float]) -> str:
    """The text if it says what is expected, and nothing else."""
    try:
        correct = tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        correct = False
    if not correct:
        keys = ", ".join(f"{_dotted(path)} = {value:g}" for path, value in changes.items())
        raise SiteError(
            "the site file is laid out in a way that cannot be edited: write each table with its keys in the lines "
            f"below it, or set by hand: {keys}.",
            changes=dict(changes),
        )
    return text


def _with(text: str, path: KeyPath, value: str) -> str:
    """The text with one number changed."""
    lines, known = text.splitlines(), key_lines(text)
    if path in known:
        index = known[path] - 1
        match = _VALUE.match(lines[index])
        if match is not None:
            comment = "" if match[4] is None or "guess" in match[4] else match[4]
            gap = " " * max(1, len(match[2] + match[3]) - len(value))
            lines[index] = f"{match[1]}{value}{gap}{comment}".rstrip()
    elif path[:-1] in known:
        lines.insert(_end(lines, known, path[:-1]), f"{path[-1]} = {value}")
    elif len(path) == 1:
        lines.insert(0, f"{path[0]} = {value}")
    else:
        at = _end(lines, known, path[:-2])
        lines[at:at] = ["", f"[{_dotted(path[:-1])}]", f"{path[-1]} = {value}"]
    return "\n".join(lines) + "\n"


def _end(lines: list[str], known: Mapping[KeyPath, int], table: KeyPath) -> int:
    """The index of the line after the last key of a table."""
    start = known.get(table, 0)
    headers = [line for path, line in known.items() if line > start and lines[line - 1].lstrip().startswith("[")]
    end = min(headers, default=len(lines) + 1) - 1
    while end > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _set(content: dict[str, Any], path: KeyPath, value: float) -> None:
    """Set a key of parsed TOML, and make the tables around it."""
    table: Any = content
    for part in path[:-1]:
        table = table[part] if isinstance(part, int) else table.setdefault(part, {})
    table[path[-1]] = value


def _dotted(path: KeyPath) -> str:
    return ".".join(map(str, path))
