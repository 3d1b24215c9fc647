"""Where in a TOML text a key was set, so that an error can name the line."""

import re

_HEADER = re.compile(r"^\s*\[(\[)?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(\s*\.\s*[A-Za-z0-9_-]+)*\s*=""")

Path = tuple[str | int, ...]


def locate(text: str, path: Path) -> int:
    r"""Line (from 1) of the key at `path`, or of what is first inside it, or of the nearest table around it.

    >>> locate('name = "a"\n[physics]\nT = 0.05\n', ("physics", "T"))
    3
    """
    lines = _index(text)
    while path:
        inside = [line for key, line in lines.items() if key[: len(path)] == path]
        if inside:
            return min(inside)
        path = path[:-1]
    return 1


def _index(text: str) -> dict[Path, int]:
    found: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in _statements(text):
        header = _HEADER.match(line)
        if header:
            table = tuple(part.strip().strip("\"'") for part in header.group(2).split("."))
            if header.group(1):
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            found.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            dotted = line[: key.end() - 1].strip()
            parts = tuple(part.strip().strip("\"'") for part in dotted.split("."))
            found.setdefault((*table, *parts), number)
    return found


def _statements(text: str) -> list[tuple[int, str]]:
    """Lines that can start a statement: not inside a string of several lines, nor inside brackets."""
    starts, closing, depth = [], "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        rest = line
        if not closing and depth == 0:
            starts.append((number, line))
            if _HEADER.match(line):
                continue
        while rest:
            if closing:
                _, mark, rest = rest.partition(closing)
                closing = "" if mark else closing
                continue
            token = re.search(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|[\[\]{}]|#', rest)
            if token is None or token.group() == "#":
                break
            rest = rest[token.end() :]
            if token.group() in {'"""', "'''"}:
                closing = token.group()
            elif token.group() in "[{":
                depth += 1
            elif token.group() in "]}":
                depth = max(0, depth - 1)
    return starts
