"""Reading a site file: TOML in, a validated `Site` out, or an error that names the line and the key."""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cloakwork.errors import InputError, SiteError
from cloakwork.site import schema
from cloakwork.site.bit_site import BitSite
from cloakwork.site.installation import Site
from cloakwork.site.schema import KINDS, BitSiteSpec, SiteSpec

KeyPath = tuple[str | int, ...]
Spec = TypeVar("Spec", bound=BaseModel)

_STATEMENT = re.compile(r"""\s*(\[\[?[^\[\],]+\]|[\w"'.\s-]+=)""")  # how a line begins that may be one
LARGEST_FILE = 10_000_000
_TYPES = {*KINDS, "own", "float", "int", "constrained-int", "str", "number", "list"}  # in locations, but no keys
_WHOLE = {"at", "edges", "walls", "doors", "room", "corners", "between"}  # an error inside is reported for all of it
_OF_READINGS = ("physics", "sources", "privacy")
_VALUE = re.compile(r"^([^=]*=\s*)([^#\n]*?)(\s*)(#.*)?$")


def load_site(path: str | Path, *, run_code: bool = False) -> Site:
    """Read and check the file of a site of readings; an error names the line, the key and what is allowed.

    A site may have a model of its own in a Python file, such as `kind = "sound.py:Sound"`. This file is run only with
    `run_code`, which commands and services never set.

    >>> from importlib.resources import files
    >>> site = load_site(str(files("cloakwork.site") / "example.toml"))
    >>> site.name, len(site.sensor_ids)
    ('flat', 80)
    """
    return _with_readings(load_any_site(path, run_code=run_code))


def load_any_site(path: str | Path, *, run_code: bool = False) -> Site | BitSite:
    """Read and check a site file, of readings or of bits."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise SiteError(
                f"{file}: larger than {LARGEST_FILE // 10**6} MB; a site file is a page of text.", path=str(file)
            )
        text = file.read_text(encoding="utf-8")
    except OSError as problem:
        raise SiteError(
            f"{file}: {problem.strerror}. Write an example with: cloakwork init", path=str(file), errno=problem.errno
        ) from None
    except UnicodeDecodeError:
        raise SiteError(f"{file}: not a text file in UTF-8.", path=str(file)) from None
    return parse_any_site(text, name=str(file), folder=file.parent, run_code=run_code)


def parse_site(text: str, *, name: str = "site", folder: Path | None = None) -> Site:
    """Read the file of a site of readings from a text; files that it names are looked up in `folder`."""
    return _with_readings(parse_any_site(text, name=name, folder=folder))


def parse_any_site(
    text: str, *, name: str = "site", folder: Path | None = None, run_code: bool = False
) -> Site | BitSite:
    """Read a site file from a text; one with a table `[bits]` is of a site of binary sensors."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SiteError(f"{name}: not valid TOML: {problem}", path=name) from None
    if "bits" in content and (both := [key for key in _OF_READINGS if key in content]):
        line = locate(text, ("bits",))
        raise SiteError(
            f"{name}, line {line}: [bits] and [{both[0]}]: a site has bits or readings, because neither "
            "guarantee covers both. Write two site files, one with [bits] and the binary sensors, and give both to the "
            "collector.",
            path=name,
            lines={"bits": line},
        )
    site: Site | BitSite
    if "bits" in content:
        site = BitSite(_validated(BitSiteSpec, content, text, name), name)
    else:
        site = Site(_validated(SiteSpec, content, text, name), folder or Path(), name, run_code)
    try:
        site.build()
    except InputError as problem:
        path = _path_of(problem, site)
        line = locate(text, path)
        raise SiteError(
            f"{name}, line {line}: {_with_id(problem, site)}", path=name, lines={_dotted(path): line}
        ) from None
    return site


def _with_readings(site: Site | BitSite) -> Site:
    if isinstance(site, BitSite):
        raise SiteError(
            f"{site.source}: a site of bits, which have no map. This needs a site of readings, with [physics].",
            path=site.source,
        )
    return site


def _validated(model: type[Spec], content: dict[str, Any], text: str, name: str) -> Spec:
    try:
        return model.model_validate(content)
    except ValidationError as problem:
        messages = _messages(problem, model)
        lines = {key: locate(text, path) for key, (path, _) in messages.items()}
        message = "\n".join(f"{name}, line {lines[key]}: {message}" for key, (_, message) in messages.items())
        raise SiteError(message, path=name, lines=lines) from None


def _messages(problem: ValidationError, model: type[BaseModel]) -> dict[str, tuple[KeyPath, str]]:
    """Return where and what is wrong for each key that is; a key with several allowed types is reported once."""
    messages: dict[str, tuple[KeyPath, str]] = {}
    for error in problem.errors(include_url=False):
        if error["type"] == "default_factory_not_called":  # a key that was left out, where another is wrong
            continue
        path: KeyPath = tuple(
            part for part in error["loc"] if not (isinstance(part, str) and (part in _TYPES or "[" in part))
        )
        if error["type"].startswith("union_tag"):
            path = (*path, "kind")
        whole = path[: next((k for k, part in enumerate(path) if part in _WHOLE), len(path)) + 1]
        messages.setdefault(_dotted(whole), (path, _message(error, whole, model)))
    return messages


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _message(error: ErrorDetails, path: KeyPath, model: type[BaseModel]) -> str:
    dotted, value = _dotted(path), error["input"]
    key = str(path[-1]) if path else ""
    if error["type"] == "missing":
        table = key in _OF_READINGS
        return f"the table [{key}] is missing." if table else f"{dotted}: this key is missing."
    if error["type"] == "extra_forbidden":
        allowed = _allowed_keys(error["loc"], model)
        near = difflib.get_close_matches(key, allowed, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        return f"{dotted} = {value!r}: there is no such key here (allowed: {', '.join(allowed)}){hint}"
    if error["type"].startswith("union_tag"):
        kind = value.get("kind") if isinstance(value, dict) else None
        return f"{dotted} = {kind!r}: give kind = one of {', '.join(KINDS)}."
    advice = error["msg"]
    for words, ours in _PLAIN_WORDS.items():
        advice = re.sub(f"^{words}", ours, advice)
    if error["type"] != "value_error" and path[:1] != ("drift",):  # its sensor and room are numbers
        advice = _FORMS.get(key, advice)
    shown = "" if isinstance(value, dict | list) and key not in {"at", "edges"} else f" = {value!r}"
    return f"{dotted or 'site'}{shown}: {advice}."


_FORMS = {
    "name": "give letters, digits, - and _, at most 64 of them",
    "id": "give letters, digits, - and _, at most 64 of them",
    "at": "give a number on a line, [x, y] in a room or on a plane, or the name of a node",
    "edges": 'give a file name, or a list of ["from", "to"], with a weight and a length after them if you like',
    "size": "give [width, depth]",
    "walls": "give a list of [[x, y], [x, y]] in metres",
    "doors": "give a list of [[x, y], [x, y]] in metres",
    "sensor": "write [[sensor]], with double brackets, once for each sensor",
    "zone": "write [[zone]], with double brackets, once for each zone",
    "entrance": "write [[entrance]], with double brackets, once for each entrance",
    "room": "give [x, y], a point in the room",
    "corners": "give a list of [x, y]: two opposite corners of a rectangle, or all corners of another shape",
    "between": "give [from, to], two positions on the line",
}
_PLAIN_WORDS = {  # how messages of pydantic begin, and ours
    "Value error, ": "",
    "Input should be a valid dictionary.*": "write a table, with its keys in the lines below",
    "Input should be a valid (string|text)": "give a text in quotes",
    "Input should be a valid boolean": "give true or false",
    "Input should be a valid list": "give a list in [ ]",
    "Input should be a valid number": "give a number, without quotes and without a unit",
    "Input should be a valid integer.*": "give a whole number, without quotes",
    "Input should be (greater|less)": r"give a number \1",
    "Input should be": "give",
}


def _allowed_keys(path: KeyPath, model: type[BaseModel]) -> list[str]:
    # the table [privacy] is PrivacySpec, and so on; [[sensor]] of a site of bits is BitsSensorSpec
    tables = {name.removesuffix("Spec").lower(): table for name, table in vars(schema).items() if name.endswith("Spec")}
    if model is BitSiteSpec:
        tables |= {name.removeprefix("bits"): table for name, table in tables.items() if name.startswith("bits")}
    table = next((tables[part] for part in reversed(path[:-1]) if isinstance(part, str) and part in tables), model)
    return list(table.model_fields)


def _path_of(problem: InputError, site: Site | BitSite) -> KeyPath:
    """Return the key that an error of the model or the claim is about, from the values that it carries."""
    at, key, sensor = (problem.values.get(name) for name in ("at", "key", "sensor"))
    if isinstance(problem, SiteError) and isinstance(at, tuple):
        return at
    if isinstance(site, BitSite):
        return ("bits", str(key or "epsilon"))
    if key is not None:
        return ("privacy" if isinstance(problem, SiteError) else "physics", str(key))
    if isinstance(sensor, int) and site.spec.sensor:
        return ("sensor", sensor, "at")
    return ("physics", "drawing") if "drawing" in str(problem) else ("physics",)


def _with_id(problem: InputError, site: Site | BitSite) -> str:
    """The message of an error, with the id of a sensor in place of its number."""
    number, sensors = problem.values.get("sensor"), site.spec.sensor
    if not isinstance(number, int) or not sensors:
        return str(problem)
    return str(problem).replace(f"sensor {number}", f'sensor "{sensors[number].id}"', 1)


def locate(text: str, path: KeyPath) -> int:
    r"""Return the line (from 1) that sets a key in a TOML text.

    Without such a line, that of the first key inside it, or of the nearest table around it.

    >>> locate('name = "a"\n[physics]\nT = 0.05\n', ("physics", "T"))
    3
    """
    lines = key_lines(text)
    while path:
        inside = [line for key, line in lines.items() if key[: len(path)] == path]
        if inside:
            return min(inside)
        path = path[:-1]
    return 1


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each table and key; one inside a value has the line where the value's statement begins."""
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    number = Counter[KeyPath]()
    lines = text.splitlines()
    start = next((k for k, line in enumerate(lines) if _STATEMENT.match(line)), len(lines))
    for end in range(start + 1, len(lines) + 1):
        if end < len(lines) and not _STATEMENT.match(lines[end]):
            continue
        try:
            paths = list(_paths(tomllib.loads("\n".join(lines[start:end]))))
        except tomllib.TOMLDecodeError:  # inside a string or a list
            continue
        if lines[start].lstrip().startswith("["):
            table = paths[-1]
            if lines[start].lstrip().startswith("[["):
                number[table] += 1
                table = (*table, number[table] - 1)
            paths = [()]
        for path in paths:
            found.setdefault((*table, *path), start + 1)
        start = end
    return found


def _paths(content: dict[str, Any]) -> Iterator[KeyPath]:
    """The keys of parsed TOML, with those inside them."""
    for key, value in content.items():
        yield (key,)
        yield from ((key, *path) for path in _paths(value if isinstance(value, dict) else {}))


def edited(text: str, changes: Mapping[KeyPath, float]) -> str:
    r"""Return the text of a site file with other numbers; a key that is not there is added to its table.

    Comments stay, except those that call the old number a guess.

    >>> print(edited('[physics]\nreach = 2.0   # in metres\n', {("physics", "reach"): 1.5}), end="")
    [physics]
    reach = 1.5   # in metres
    """
    changed = text if text.endswith("\n") or not text else text + "\n"
    for path, value in reversed(list(changes.items())):  # each new key comes before the others of its table
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
    """The text with one number changed, or added as the first key of its table."""
    lines, known = text.splitlines(), key_lines(text)
    if path in known:
        index = known[path] - 1
        match = _VALUE.match(lines[index])
        if match is not None:
            comment = "" if match[4] is None or "guess" in match[4] else match[4]
            gap = " " * max(1, len(match[2] + match[3]) - len(value))
            lines[index] = f"{match[1]}{value}{gap}{comment}".rstrip()
        return "\n".join(lines) + "\n"
    if len(path) > 1 and path[:-1] not in known:
        lines += ["", f"[{_dotted(path[:-1])}]"]
        known = {path[:-1]: len(lines)}
    lines.insert(known.get(path[:-1], 0), f"{path[-1]} = {value}")
    return "\n".join(lines) + "\n"


def _set(content: dict[str, Any], path: KeyPath, value: float) -> None:
    """Set a key of parsed TOML, and make the tables around it."""
    table: Any = content
    for part in path[:-1]:
        table = table[part] if isinstance(part, int) else table.setdefault(part, {})
    table[path[-1]] = value
