"""What results are made of: the code, the libraries and the recordings, told by fingerprints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path

from cloakwork.demo.recorded import data_file
from papers.experiment import Experiment

NO_DATA = "none"
_APART = {"agent", "auditing/sources", "cli", "collect", "demo", "lab/report.py"}  # what no result depends on
_LIBRARIES = ("matplotlib", "networkx", "numba", "numpy", "scipy")


@dataclass(frozen=True)
class Origin:
    """What made a result, apart from its size and seed.

    Parameters
    ----------
    code
        Fingerprint of all code that a result may depend on, libraries included; the same for all experiments.
    libraries
        The versions of those that compute and draw.
    data
        For each recording that the experiment uses its SHA-256, or `NO_DATA` where it was not there.
    """

    code: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The recordings that were not there."""
        return tuple(name for name, digest in self.data.items() if digest == NO_DATA)


def origin_of(experiment: Experiment) -> Origin:
    """What a result of this experiment is made of if it is run now."""
    return Origin(code(), libraries(), {name.as_posix(): _digest(data_file(name)) for name in experiment.data})


@cache
def code() -> str:
    """The fingerprint of what this process runs."""
    return fingerprint(Path(__file__).parents[1], libraries())


def libraries() -> dict[str, str]:
    """The versions of the libraries that numbers and pictures depend on."""
    return {name: version(name) for name in _LIBRARIES}


def fingerprint(package: Path, versions: Mapping[str, str]) -> str:
    """A fingerprint of the sources of a package that a result may depend on, and of versions of libraries."""
    whole = sha256(json.dumps(dict(versions), sort_keys=True).encode())
    for name in sources(package):
        whole.update(b"\0" + name.encode() + b"\0" + (package / name).read_bytes())
    return whole.hexdigest()[:16]


def sources(package: Path) -> list[str]:
    """The files of a package that a result may depend on: all but those that only use results."""
    names = [path.relative_to(package) for path in package.rglob("*.py")]
    return sorted(name.as_posix() for name in names if _APART.isdisjoint(map(str, (name, *name.parents))))


def _digest(path: Path | None) -> str:
    if path is None:
        return NO_DATA
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
