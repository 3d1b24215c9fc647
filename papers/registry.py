"""All experiments, by name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cloakwork.errors import InputError
from papers import experiments
from papers.experiment import Experiment
from papers.result import Result


def _found() -> Mapping[str, Experiment]:
    """Every module of `experiments` has one experiment; they are listed in the order of `experiments.ORDER`."""
    modules = [import_module(f"{experiments.__name__}.{name}") for name in experiments.ORDER]
    return {module.EXPERIMENT.name: module.EXPERIMENT for module in modules}


EXPERIMENTS = _found()


def find(name: str) -> Experiment:
    """The experiment with this name.

    >>> find("estimators").name
    'estimators'
    """
    if name not in EXPERIMENTS:
        known, near = ", ".join(EXPERIMENTS), get_close_matches(name.lower(), EXPERIMENTS, n=1)
        meant = f"did you mean {near[0]}? The" if near else "the"
        raise InputError(f"{name!r} is not an experiment: {meant} experiments are {known}.", name=name)
    return EXPERIMENTS[name]


@dataclass(frozen=True)
class _Stored:
    experiment: str
    title: str
    quick: bool
    seed: int
    finding: Any


def read_result(text: str) -> Result:
    """A result from its JSON, as `Result.to_json` made it."""
    try:
        stored = TypeAdapter(_Stored).validate_python(json.loads(text))
        experiment = find(stored.experiment)
        finding: Any = TypeAdapter(experiment.finding).validate_python(stored.finding)
    except (json.JSONDecodeError, ValidationError):
        raise InputError("not the JSON of a result: write one with `python -m papers run NAME --out DIR`.") from None
    return Result(experiment.name, stored.title, stored.quick, stored.seed, finding)
