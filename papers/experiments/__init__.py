"""The experiments, one a module; `EXPERIMENTS` has them by name, in the order of the report."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module

from cloakwork.errors import InputError
from papers.experiment import Experiment

MODULES = (
    "toolbox",
    "typical",
    "noisy_recovery",
    "private_recovery",
    "many_sources",
    "sensitivity",
    "graph_table",
    "communities",
    "origins",
    "graphons",
    "convolution",
    "learners",
    "testers",
    "stays",
    "tracking",
    "recorded_radio",
    "stale_maps",
    "recorded_counts",
    "recorded_motion",
    "recorded_warmth",
    "estimators",
    "errata",
)


def _load() -> Mapping[str, Experiment]:
    modules = [import_module(f"{__name__}.{name}") for name in MODULES]
    return {module.EXPERIMENT.name: module.EXPERIMENT for module in modules}


EXPERIMENTS = _load()


def find(name: str) -> Experiment:
    """Return the experiment with this name.

    >>> find("estimators").name
    'estimators'
    """
    if name not in EXPERIMENTS:
        near = get_close_matches(name.lower(), EXPERIMENTS, n=1)
        meant = f"did you mean {near[0]}? The" if near else "the"
        raise InputError(
            f"{name!r} is not an experiment: {meant} experiments are {', '.join(EXPERIMENTS)}.",
            name=name,
            near=near[0] if near else None,
        )
    return EXPERIMENTS[name]
