"""The state of a fit in a file, so that it can be interrupted and go on."""

from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cloakwork.errors import InputError
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame
from cloakwork.site import Site


class KeptSearch:
    """Arrays by their names in one file, which belongs to one site, noise and period of readings."""

    def __init__(self, path: Path, site: Site, cloak: Cloak, frames: list[Frame]) -> None:
        self._path = path
        digest = sha256(f"{version('cloakwork')} {site.spec.model_dump_json()}".encode())
        for values in (cloak.total_sigmas, cloak.steps, *(part for f in frames for part in (f.steps, f.present))):
            digest.update(np.ascontiguousarray(values).tobytes())
        digest.update(repr([frame.time for frame in frames]).encode())
        self._digest = digest.hexdigest()

    def read(self) -> dict[str, NDArray[Any]]:
        """What was kept, nothing if there is no file yet; a file of another fit is refused."""
        if not self._path.exists():
            return {}
        try:
            with self._path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                state = dict(file)
        except (OSError, ValueError, EOFError, BadZipFile):
            state = {}
        if str(state.get("digest")) != self._digest:
            raise InputError(
                f"{self._path}: this is not a file of this fit. Give that of an interrupted fit to the same readings, "
                "or the name of a new file.",
                path=str(self._path),
            )
        return state

    def save(self, **arrays: object) -> None:
        """Replace what was kept, as a whole."""
        part = self._path.with_name(f".{self._path.name}.part")
        plain: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, digest=self._digest, **plain)
        part.replace(self._path)
