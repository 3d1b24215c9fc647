"""Results on disk: a JSON file and a picture for each experiment, and whether they are still valid."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding
from pydantic import TypeAdapter

from cloakwork.errors import InputError
from papers.experiment import Experiment, Progress
from papers.experiments import find
from papers.recordings import data_file
from papers.result import Result

LIBRARIES = ("matplotlib", "networkx", "numba", "numpy", "scipy")
CLOSE = 1e-3  # relative difference that another library may cause in a number of a probe
ASTRAY = 0.15  # share of its numbers that may differ on another processor, where rounding sends a search elsewhere


@dataclass(frozen=True)
class Record:
    """A result with its origin.

    Parameters
    ----------
    signature
        The numbers of the probe that was run with the result: a result is stale when the probe gives others.
    processor
        The kind of processor that ran the probe. On another, a few numbers may differ.
    libraries
        Versions of the libraries that compute and draw, for information.
    data
        The SHA-256 of each recording that the experiment uses.
    kept
        Whether the result was already in the folder.
    """

    result: Result
    signature: tuple[float, ...]
    processor: str
    libraries: Mapping[str, str]
    data: Mapping[str, str]
    seconds: float
    kept: bool = field(default=False, compare=False)

    def difference(self) -> str:
        """Repeat the probe; describe the first number that differs from the signature, or return "" if it agrees."""
        numbers = find(self.result.name).probe(self.result.seed)
        if len(numbers) != len(self.signature):
            return f"the probe gives {len(numbers)} numbers instead of {len(self.signature)}"
        differing = [
            f"{name} = {now:.6g} instead of {before:.6g}"
            for (name, now), before in zip(numbers.items(), self.signature, strict=True)
            if not math.isclose(now, before, rel_tol=CLOSE, abs_tol=1e-9)
        ]
        allowed = 0 if self.processor == processor() else ASTRAY * len(numbers)
        return f"the probe gives {differing[0]}" if len(differing) > allowed else ""

    def to_json(self) -> Mapping[str, Any]:
        """Plain values, ready for `json.dumps`."""
        return {
            **self.result.to_json(),
            "signature": " ".join(f"{number:.6g}" for number in self.signature),
            "processor": self.processor,
            "libraries": dict(self.libraries),
            "data": dict(self.data),
            "seconds": round(self.seconds, 1),
        }


def digests(experiment: Experiment) -> dict[str, str]:
    """The SHA-256 of each recording of an experiment."""
    return {name.as_posix(): sha256(data_file(name).read_bytes()).hexdigest() for name in experiment.data}


def processor() -> str:
    """The kind of this processor, as compilers name it."""
    return str(llvmlite.binding.get_host_cpu_name())


def library_versions() -> dict[str, str]:
    """The versions of the libraries that numbers and pictures depend on."""
    return {name: version(name) for name in LIBRARIES}


def write(record: Record, folder: Path) -> None:
    """Write NAME.png and NAME.json. A JSON file is only ever beside the picture of its own numbers."""
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


@dataclass(frozen=True)
class _Stored:
    experiment: str
    quick: bool
    seed: int
    finding: Any
    signature: str = ""
    processor: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def parse(text: str) -> Record:
    """Read a record from its JSON."""
    try:
        stored = TypeAdapter(_Stored).validate_json(text)
        experiment = find(stored.experiment)
        finding: Any = TypeAdapter(experiment.finding).validate_python(stored.finding)
        signature = tuple(float(number) for number in stored.signature.split())
    except ValueError:  # and its subclass ValidationError
        raise InputError("not the JSON of a result: write one with `python -m papers run NAME --out DIR`.") from None
    result = Result(experiment.name, experiment.title, stored.quick, stored.seed, finding)
    return Record(result, signature, stored.processor, stored.libraries, stored.data, stored.seconds)


def read_result(text: str) -> Result:
    """Read a result from its JSON, as `Result.to_json` made it."""
    return parse(text).result


def read(name: str, folder: Path) -> Record:
    """Read NAME.json; refuse a folder where it is missing or damaged."""
    path = folder / f"{name}.json"
    again = f"write it with `python -m papers run {name} --out {folder}`."
    try:
        record = parse(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} has no {name}.json: {again}", experiment=name) from None
    except (InputError, UnicodeDecodeError):
        raise InputError(f"{path} is not the JSON of a result: {again}", experiment=name) from None
    if record.result.name != name:
        raise InputError(f"{path} is a result of {record.result.name}: {again}", experiment=name)
    return record


def readable(names: Sequence[str], folder: Path) -> dict[str, Record]:
    """Read the results of a folder that can be read, by name."""
    records: dict[str, Record] = {}
    for name in names:
        with suppress(InputError):
            records[name] = read(name, folder)
    return records


def is_done(experiment: Experiment, folder: Path, *, quick: bool, seed: int) -> bool:
    """Whether a folder holds a result of this size and seed, from the same data, whose probe still gives the same."""
    record = readable([experiment.name], folder).get(experiment.name)
    if record is None or not (folder / f"{experiment.name}.png").is_file():
        return False
    same = (record.result.quick, record.result.seed, record.data) == (quick, seed, digests(experiment))
    return same and not record.difference()


def read_run(names: Sequence[str], folder: Path, progress: Progress) -> tuple[Record, ...]:
    """Read the results of one full run of all experiments; refuse a folder with anything else."""
    records: list[Record] = []
    problems: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        try:
            record = read(name, folder)
        except InputError:
            problems[name] = "missing or unreadable"
        else:
            records.append(record)
            if problem := _problem(record, records[0]):
                problems[name] = problem
        progress(number, len(names))
    if problems:
        listed = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise InputError(
            f"{folder} does not hold one valid full run ({listed}): run `python -m papers run all --out {folder}`.",
            folder=str(folder),
            problems=problems,
        )
    return tuple(records)


def _problem(record: Record, first: Record) -> str:
    """Why a result is not part of a full run that begins with `first`; "" if it is."""
    if record.result.quick:
        return "quick"
    if record.result.seed != first.result.seed:
        return f"seed {record.result.seed} instead of {first.result.seed}"
    difference = record.difference()
    return f"stale, {difference}" if difference else ""
