"""All experiments, by name."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cloakwork.errors import InputError
from cloakwork.lab.experiment import Experiment
from cloakwork.lab.experiments import estimators, vicinities
from cloakwork.lab.result import Result

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment for experiment in (estimators.EXPERIMENT, vicinities.EXPERIMENT)
}


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
