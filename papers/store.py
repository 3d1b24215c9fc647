"""Results on disk: a JSON file and a picture for each experiment, and whether they are still valid."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding

from cloakwork.errors import InputError
from papers.experiment import Experiment
from papers.experiments import find
from papers.recordings import data_file
from papers.result import Result
from papers.rows import numbers_in, revived

LIBRARIES = ("matplotlib", "networkx", "numba", "numpy", "scipy")
CLOSE = 1e-3  # relative difference that another library may cause in a number of a probe
ASTRAY = 0.15  # share of its numbers that may differ on another processor, where rounding sends a search elsewhere


def difference(result: Result) -> str:
    """Repeat the probe; describe the first number that differs from the signature, or return "" if it agrees."""
    numbers = find(result.name).probe(result.seed)
    if lost := _columns(numbers) - _columns(dict(numbers_in(result.finding))):
        return f"it has no {min(lost)}"
    if len(numbers) != len(result.signature):
        return f"the probe gives {len(numbers)} numbers instead of {len(result.signature)}"
    differing = [
        f"{name} = {now:.6g} instead of {before:.6g}"
        for (name, now), before in zip(numbers.items(), result.signature, strict=True)
        if not math.isclose(now, before, rel_tol=CLOSE, abs_tol=1e-9)
    ]
    allowed = 0 if result.processor == processor() else ASTRAY * len(numbers)
    return f"the probe gives {differing[0]}" if len(differing) > allowed else ""


def _columns(numbers: Mapping[str, float]) -> set[str]:
    return {re.sub(r"\[\d+\]", "", name) for name in numbers}


def digests(experiment: Experiment) -> dict[str, str]:
    """The SHA-256 of each recording of an experiment."""
    return {name.as_posix(): sha256(data_file(name).read_bytes()).hexdigest() for name in experiment.data}


def processor() -> str:
    """The kind of this processor, as compilers name it."""
    return str(llvmlite.binding.get_host_cpu_name())


def library_versions() -> dict[str, str]:
    """The versions of the libraries that numbers and pictures depend on."""
    return {name: version(name) for name in LIBRARIES}


def as_json(result: Result) -> str:
    """The text of NAME.json."""
    head = {"experiment": result.name, "title": result.title, "quick": result.quick, "seed": result.seed}
    origin = {
        "signature": " ".join(f"{number:.6g}" for number in result.signature),
        "processor": result.processor,
        "libraries": dict(result.libraries),
        "data": dict(result.data),
        "seconds": round(result.seconds, 1),
    }
    content = head | {"finding": result.finding} | origin
    return json.dumps(content, indent=1, allow_nan=False, default=vars) + "\n"


def write(result: Result, folder: Path) -> None:
    """Write NAME.png and NAME.json. A JSON file is only ever next to the picture of its own numbers."""
    picture, numbers = (folder / f".{result.name}.{os.getpid()}.part.{kind}" for kind in ("png", "json"))
    try:
        result.draw(picture)
        numbers.write_text(as_json(result), encoding="utf-8")
        (folder / f"{result.name}.json").unlink(missing_ok=True)
        picture.replace(folder / f"{result.name}.png")
        numbers.replace(folder / f"{result.name}.json")
    finally:
        picture.unlink(missing_ok=True)
        numbers.unlink(missing_ok=True)


def parse(text: str) -> Result:
    """Read a result from its JSON."""
    try:
        stored = json.loads(text)
        experiment = find(stored.pop("experiment"))
        stored["title"], stored["finding"] = experiment.title, experiment.finding(**vars(revived(stored["finding"])))
        stored["signature"] = tuple(float(number) for number in stored["signature"].split())
        return Result(experiment.name, **stored)
    except (ValueError, KeyError, TypeError, AttributeError):  # not JSON, or not of a result
        raise InputError("not the JSON of a result: write one with `python -m papers run NAME --out DIR`.") from None


def read(name: str, folder: Path) -> Result:
    """Read NAME.json; refuse a folder where it is missing or damaged."""
    path = folder / f"{name}.json"
    again = f"write it with `python -m papers run {name} --out {folder}`."
    try:
        result = parse(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} has no {name}.json: {again}", experiment=name) from None
    except (InputError, UnicodeDecodeError):
        raise InputError(f"{path} is not the JSON of a result: {again}", experiment=name) from None
    if result.name != name:
        raise InputError(f"{path} is a result of {result.name}: {again}", experiment=name)
    return result


def readable(names: Sequence[str], folder: Path) -> dict[str, Result]:
    """Read the results of a folder that can be read, by name."""
    results: dict[str, Result] = {}
    for name in names:
        with suppress(InputError):
            results[name] = read(name, folder)
    return results


def valid(experiment: Experiment, folder: Path, *, quick: bool, seed: int) -> Result | None:
    """Read the result of this size and seed, from the same data, whose probe still gives the same; None without one."""
    result = readable([experiment.name], folder).get(experiment.name)
    if result is None or not (folder / f"{experiment.name}.png").is_file():
        return None
    same = (result.quick, result.seed, result.data) == (quick, seed, digests(experiment))
    return result if same and not difference(result) else None
