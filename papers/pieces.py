"""Long work in pieces: each is kept when it is done, so that a run that was interrupted loses one at most."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from papers.experiment import Progress, part
from papers.result import Finding

Part = TypeVar("Part")


class Cut(Protocol[Part]):
    """How the work is cut: the same seed gives the same pieces."""

    def __call__(self, *, quick: bool, seed: int) -> "Sequence[Piece[Part]]":
        """`quick` as in `Work`."""


@dataclass(frozen=True)
class Piece(Generic[Part]):
    """A piece of the work; `size` is how much of it, in whatever unit the pieces share."""

    name: str
    size: int
    make: Callable[[Progress], Part]


@dataclass(frozen=True)
class Pieces(Generic[Part]):
    """The work of an experiment, piece by piece.

    Parameters
    ----------
    cut
        The pieces, in the order in which they are made and joined.
    join
        What was found, from what each piece gave.
    kind
        The dataclass that a piece gives.
    folder
        Where pieces are kept as JSON; left out, they are not.
    """

    cut: Cut[Part]
    join: Callable[[Sequence[Part]], Finding]
    kind: type[Part]
    folder: Path | None = None

    def kept_in(self, folder: Path) -> "Pieces[Part]":
        """The same work, of which no piece is done twice that the folder has."""
        return replace(self, folder=folder)

    def __call__(self, *, quick: bool, seed: int, progress: Progress) -> Finding:
        """Make what is not there, and join all."""
        pieces = self.cut(quick=quick, seed=seed)
        return self.join(list(self._all(pieces, progress)))

    def _all(self, pieces: Sequence[Piece[Part]], progress: Progress) -> Iterator[Part]:
        done, total = 0, sum(piece.size for piece in pieces)
        for piece in pieces:
            found = self._read(piece.name)
            if found is None:
                found = piece.make(part(progress, done, piece.size, total))
                self._write(piece.name, found)
            done += piece.size
            progress(done, total)
            yield found

    def _read(self, name: str) -> Part | None:
        """What was kept of a piece; one that cannot be read is made again."""
        if self.folder is None:
            return None
        try:
            return TypeAdapter(self.kind).validate_json((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def _write(self, name: str, found: Part) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f".{name}.{os.getpid()}"
        new.write_bytes(TypeAdapter(self.kind).dump_json(found))
        new.replace(self.folder / f"{name}.json")
