"""Reading a site file: TOML in, a validated `Site` out, or an error that names the line and the key."""

import difflib
import re
import tomllib
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cloakwork.errors import InputError, SiteError
from cloakwork.site import schema
from cloakwork.site.installation import Site
from cloakwork.site.schema import SiteSpec

KeyPath = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*\[(\[)?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(\s*\.\s*[A-Za-z0-9_-]+)*\s*=""")

LARGEST_FILE = 10_000_000
_KINDS = {"line", "plane", "floorplan", "graph", "matrix"}
_WHOLE = {"at", "edges", "walls", "doors", "room", "corners", "between"}  # a mistake within is told of all of it


def load_site(path: str | Path) -> Site:
    """Read and check a site file; an error names the line, the key, what was given and what is allowed."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise SiteError(f"{file}: larger than {LARGEST_FILE // 10**6} MB; a site file is a page of text.")
        text = file.read_text(encoding="utf-8")
    except OSError as problem:
        raise SiteError(f"{file}: {problem.strerror}. Write an example with: cloakwork init") from None
    except UnicodeDecodeError:
        raise SiteError(f"{file}: not a text file in UTF-8.") from None
    return parse_site(text, name=str(file), folder=file.parent)


def parse_site(text: str, *, name: str = "site", folder: Path | None = None) -> Site:
    """Like `load_site`, from a text."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SiteError(f"{name}: not valid TOML: {problem}") from None
    try:
        site = Site(SiteSpec.model_validate(given), folder or Path(), name)
    except ValidationError as problem:
        raise SiteError(_sentences(problem, text, name)) from None
    try:
        _ = site.zones if site.spec.zone else site.physics
    except InputError as problem:
        said = str(problem)
        number = problem.values.get("sensor")
        if isinstance(number, int) and site.spec.sensor:
            said = said.replace(f"sensor {number}", f'sensor "{site.spec.sensor[number].id}"', 1)
        raise SiteError(f"{name}, line {locate(text, _blame(problem, site.spec))}: {said}") from None
    return site


def _sentences(problem: ValidationError, text: str, name: str) -> str:
    """One line for each key that is wrong; a key that may have several types is reported once."""
    lines: dict[KeyPath, str] = {}
    for error in problem.errors(include_url=False):
        kinds = {*_KINDS, "float", "int", "str", "number", "list"}
        path: KeyPath = tuple(
            part for part in error["loc"] if not (isinstance(part, str) and (part in kinds or "[" in part))
        )
        if error["type"].startswith("union_tag"):
            path = (*path, "kind")
        whole = path[: next((k for k, part in enumerate(path) if part in _WHOLE), 99) + 1]
        lines.setdefault(whole, f"{name}, line {locate(text, path)}: {_said(error, whole)}")
    return "\n".join(lines.values())


def _said(error: ErrorDetails, path: KeyPath) -> str:
    dotted = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    given = error["input"]
    key = str(path[-1]) if path else ""
    if error["type"] == "missing":
        table = key in {"physics", "sources", "privacy"}
        return f"the table [{key}] is missing." if table else f"{dotted}: this key is missing."
    if error["type"] == "extra_forbidden":
        allowed = _allowed(error["loc"])
        near = difflib.get_close_matches(key, allowed, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        return f"{dotted} = {given!r}: there is no such key here (allowed: {', '.join(allowed)}){meant}"
    if error["type"].startswith("union_tag"):
        return f"{dotted} = {given.get('kind')!r}: give kind = one of {', '.join(sorted(_KINDS))}."
    wanted = _GENERIC.get(error["type"], error["msg"])
    if error["type"] in _GENERIC:
        wanted = _FORMS.get(key, wanted)
    if error["type"] == "literal_error":
        wanted = f"give {error['ctx']['expected']}"
    if error["type"] in _BOUNDS:
        kind, bound = _BOUNDS[error["type"]]
        wanted = f"give a number {kind} {error['ctx'][bound]:g}"
    shown = "" if isinstance(given, dict | list) and key not in {"at", "edges"} else f" = {given!r}"
    return f"{dotted or 'site'}{shown}: {wanted.removeprefix('Value error, ')}."


_FORMS = {
    "name": "give letters, digits, - and _, at most 64 of them",
    "id": "give letters, digits, - and _, at most 64 of them",
    "at": "give a number on a line, [x, y] in a room or on a plane, or the name of a node",
    "edges": 'give a file name, or a list of ["from", "to"], with a weight and a length after them if you like',
    "walls": "give a list of [[x, y], [x, y]] in metres",
    "doors": "give a list of [[x, y], [x, y]] in metres",
    "sensor": "write [[sensor]], with double brackets, once for each sensor",
    "zone": "write [[zone]], with double brackets, once for each zone",
    "room": "give [x, y], a point in the room",
    "corners": "give a list of [x, y]: two opposite corners of a rectangle, or all corners of another shape",
    "between": "give [from, to], two positions on the line",
}
_GENERIC = {
    "string_pattern_mismatch": "other characters are expected",
    "float_type": "give a number, without quotes and without a unit",
    "int_type": "give a whole number, without quotes",
    "string_type": "give a text in quotes",
    "list_type": "give a list in [ ]",
    "too_short": "give more values",
    "too_long": "give fewer values",
    "bool_type": "give true or false",
}


_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("of at least", "ge"),
    "less_than": ("below", "lt"),
}


def _allowed(path: tuple[int | str, ...]) -> list[str]:
    tables: dict[str, type[BaseModel]] = {
        "line": schema.LineSpec,
        "plane": schema.PlaneSpec,
        "floorplan": schema.FloorPlanSpec,
        "graph": schema.GraphSpec,
        "matrix": schema.MatrixSpec,
        "tolerance": schema.ToleranceSpec,
        "sensor": schema.SensorSpec,
        "zone": schema.ZoneSpec,
        "sources": schema.SourcesSpec,
        "privacy": schema.PrivacySpec,
    }
    table = next((tables[part] for part in reversed(path[:-1]) if isinstance(part, str) and part in tables), SiteSpec)
    return list(table.model_fields)


def _blame(problem: InputError, spec: SiteSpec) -> KeyPath:
    """The key that a model's own complaint is about, from the values that it carries."""
    said = problem.values
    if "zone" in said:
        return ("zone", *(part for part in (said["zone"], said["key"]) if isinstance(part, int | str)))
    if "sensors" in said:
        return ("sensors",)
    if "sensor" in said and spec.sensor:
        ids = [sensor.id for sensor in spec.sensor]
        name = said["sensor"]
        return ("sensor", name if isinstance(name, int) else ids.index(str(name)), "at")
    if "key" in said:
        return ("physics", str(said["key"]))
    return ("physics", "drawing") if "drawing" in str(problem) else ("physics",)


def locate(text: str, path: KeyPath) -> int:
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


def _index(text: str) -> dict[KeyPath, int]:
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
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
