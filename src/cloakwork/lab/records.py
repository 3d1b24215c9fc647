"""Results on disk: one JSON file and one picture for each experiment, and whether they are still good."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cloakwork.errors import InputError
from cloakwork.lab.registry import read_result
from cloakwork.lab.result import Result

# what an experiment may depend on
_PARTS = ("auditing", "lab", "measure", "physics", "privacy", "recovery", "sensor", "series", "site")


@dataclass(frozen=True)
class Record:
    """A result with the code that made it and the seconds that took."""

    result: Result
    code: str
    seconds: float

    def to_json(self) -> Mapping[str, Any]:
        """Plain values, ready for `json.dumps`."""
        return {**self.result.to_json(), "code": self.code, "seconds": round(self.seconds, 1)}


@cache
def code() -> str:
    """A fingerprint of all code that a result may depend on."""
    root = Path(__file__).parents[1]
    files = sorted(path for part in _PARTS for path in (root / part).rglob("*.py"))
    whole = sha256()
    for path in files:
        whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:16]


def write(record: Record, folder: Path) -> None:
    """Write NAME.png, then NAME.json: where there is the JSON, there is all of it."""
    name = record.result.name
    record.result.draw(folder / f"{name}.png")
    part = folder / f".{name}.json.part"
    part.write_text(json.dumps(record.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(folder / f"{name}.json")


def read(name: str, folder: Path) -> Record:
    """Read NAME.json back; refused where there is none that can be read."""
    path = folder / f"{name}.json"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            f"{folder} has no {name}.json: write it with `cloakwork lab run {name} --out {folder}`."
        ) from None
    result = read_result(text)
    values = json.loads(text)
    return Record(result, str(values.get("code", "")), float(values.get("seconds", 0.0)))


def is_done(name: str, folder: Path, *, quick: bool, seed: int) -> bool:
    """Whether a folder has the result that a run would give: of the same size and seed, by the same code."""
    try:
        record = read(name, folder)
    except InputError:
        return False
    return (record.result.quick, record.result.seed, record.code) == (quick, seed, code())
