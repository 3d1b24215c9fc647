"""Finished simulations in a file, so that a comparison of settings can be interrupted and go on."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cloakwork.errors import InputError
from cloakwork.site.tracking_quality import Estimate, Followed, Guess, Quality


class KeptSimulations:
    """Results of simulations by their digests: one line of JSON each, written as soon as it is there.

    A last line that was cut off in the middle does not count.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Followed] = {}
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            whole = text[: text.rfind("\n") + 1]
            for line in whole.splitlines():
                kept = json.loads(line)
                self._known[kept["simulation"]] = _followed(kept["followed"])
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise InputError(
                f"{path}: this is not a file of simulations. Give the file of an earlier comparison, or a new one.",
                path=str(path),
            ) from problem
        if whole != text:
            path.write_text(whole, encoding="utf-8")

    def get(self, digest: str) -> Followed | None:
        return self._known.get(digest)

    def add(self, digest: str, followed: Followed) -> None:
        self._known[digest] = followed
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"simulation": digest, "followed": asdict(followed)}) + "\n")


def digest_of(*parts: object) -> str:
    """A name for a simulation: of the texts, numbers and bytes that decide it."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _followed(values: dict[str, Any]) -> Followed:
    live, settled = (
        Quality(**{name: Estimate(**estimate) for name, estimate in values[moment].items()})
        for moment in ("live", "settled")
    )
    return Followed(live, settled, Guess(**values["guess"]))
