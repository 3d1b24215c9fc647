"""All experiments, by name."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cloakwork.errors import InputError
from cloakwork.lab import experiments
from cloakwork.lab.experiment import Experiment
from cloakwork.lab.result import Result


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
        known = ", ".join(EXPERIMENTS)
        raise InputError(f"{name!r} is not an experiment: the experiments are {known}.", name=name)
    return EXPERIMENTS[name]


def read_result(text: str) -> Result:
    """A result from its JSON, as `Result.to_json` made it."""
    try:
        values = json.loads(text)
        experiment = find(values["experiment"])
        finding: Any = TypeAdapter(experiment.finding).validate_python(values["finding"])
        return Result(experiment.name, values["title"], values["quick"], values["seed"], finding)
    except (json.JSONDecodeError, KeyError, TypeError, ValidationError):
        raise InputError("not the JSON of a result: write one with `cloakwork lab run NAME --out DIR`.") from None
