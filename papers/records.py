"""Results on disk: one JSON file and one picture for each experiment, and whether they are still good."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cloakwork.errors import InputError
from papers.experiment import Experiment
from papers.origin import Origin, code, origin_of
from papers.registry import read_result
from papers.result import Result

USUAL_SEED = 1


@dataclass(frozen=True)
class Record:
    """A result with what made it and the seconds since that was last begun; `kept` if it was there before."""

    result: Result
    origin: Origin
    seconds: float
    kept: bool = field(default=False, compare=False)

    @property
    def code(self) -> str:
        """The fingerprint of the code that made it."""
        return self.origin.code

    def to_json(self) -> Mapping[str, Any]:
        """Plain values, ready for `json.dumps`."""
        origin = {"code": self.code, "libraries": dict(self.origin.libraries), "data": dict(self.origin.data)}
        return {**self.result.to_json(), **origin, "seconds": round(self.seconds, 1)}


@dataclass(frozen=True)
class _Time:
    seconds: float = 0.0


def write(record: Record, folder: Path) -> None:
    """Write NAME.png and NAME.json: where there is the JSON, there is all of it, and the picture is of its numbers."""
    name = record.result.name
    picture, numbers = (folder / f".{name}.{os.getpid()}.part.{kind}" for kind in ("png", "json"))
    try:
        record.result.draw(picture)
        numbers.write_text(json.dumps(record.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        (folder / f"{name}.json").unlink(missing_ok=True)
        picture.replace(folder / f"{name}.png")
        numbers.replace(folder / f"{name}.json")
    finally:
        picture.unlink(missing_ok=True)
        numbers.unlink(missing_ok=True)


def read(name: str, folder: Path) -> Record:
    """Read NAME.json back; refused where there is none that can be read."""
    path = folder / f"{name}.json"
    again = f"write it with `python -m papers run {name} --out {folder}`."
    try:
        text = path.read_text(encoding="utf-8")
        result = read_result(text)
        origin = TypeAdapter(Origin).validate_json(text)
        seconds = TypeAdapter(_Time).validate_json(text).seconds
    except OSError:
        raise InputError(f"{folder} has no {name}.json: {again}") from None
    except (InputError, UnicodeDecodeError, ValidationError):
        raise InputError(f"{path} is not the JSON of a result: {again}") from None
    if result.name != name:
        raise InputError(f"{path} is a result of {result.name}: {again}")
    return Record(result, origin, seconds)


def readable(names: Sequence[str], folder: Path) -> dict[str, Record]:
    """Those results of a folder that can be read, by name."""
    found: dict[str, Record] = {}
    for name in names:
        with suppress(InputError):
            found[name] = read(name, folder)
    return found


def is_done(experiment: Experiment, folder: Path, *, quick: bool, seed: int) -> bool:
    """Whether a folder has what a run would give: of the same size and seed, by the same code from the same data."""
    record = readable([experiment.name], folder).get(experiment.name)
    if record is None or not (folder / f"{experiment.name}.png").is_file():
        return False
    return (record.result.quick, record.result.seed, record.origin) == (quick, seed, origin_of(experiment))


def read_run(names: Sequence[str], folder: Path) -> tuple[Record, ...]:
    """The results of one full run of all experiments by the present code; a folder with anything else is refused."""
    found = readable(names, folder)
    seed, _ = Counter([one.result.seed for one in found.values()] or [USUAL_SEED]).most_common(1)[0]
    wrong = list(_wrong(names, found, seed))
    if wrong:
        again = f"python -m papers run all --out {folder}" + (f" --seed {seed}" if seed != USUAL_SEED else "")
        raise InputError(
            f"{folder} is not one full run by the present code: {'; '.join(wrong)}. Make it so: `{again}`."
        )
    return tuple(found[name] for name in names)


def _wrong(names: Sequence[str], found: Mapping[str, Record], seed: int) -> Iterator[str]:
    """What keeps results from being those of one run, with the names of those it is true of."""
    everything = {
        "no result that can be read": [name for name in names if name not in found],
        "a quick run": [name for name, one in found.items() if one.result.quick],
        f"not of seed {seed}, as most are": [name for name, one in found.items() if one.result.seed != seed],
        f"made by other code than {code()}": [name for name, one in found.items() if one.code != code()],
    }
    for what, those in everything.items():
        if those:
            yield f"{what}: {'all' if len(those) == len(names) > 1 else ', '.join(those)}"
