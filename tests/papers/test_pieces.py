"""Long experiments: an interrupted one goes on at the piece at which it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from papers import Experiment, origin
from papers.experiment import Progress, stream
from papers.pieces import Piece, Pieces
from tests.papers.dice_kit import names, run
from tests.papers.test_laboratory import Dice


@dataclass(frozen=True)
class Throw:
    eyes: int


class Table:
    """Dice are thrown one at a time, and someone may call in between."""

    def __init__(self) -> None:
        self.thrown: list[int] = []
        self.called_at = -1
        self.experiment = Experiment("dice", "What dice show", Dice, Pieces(self.cut, self.join, Throw))

    def cut(self, *, quick: bool, seed: int) -> list[Piece[Throw]]:
        return [Piece(str(number), 10, partial(self.throw, seed, number)) for number in range(2 if quick else 5)]

    def throw(self, seed: int, number: int, progress: Progress) -> Throw:
        progress(1, 2)
        if number == self.called_at:
            raise KeyboardInterrupt
        self.thrown.append(number)
        return Throw(int(stream(seed, number).integers(1, 7)))

    @staticmethod
    def join(throws: Sequence[Throw]) -> Dice:
        return Dice(tuple(throw.eyes for throw in throws))

    def interrupted(self, folder: Path, at: int, *, seed: int = 1, quick: bool = False) -> None:
        self.called_at = at
        with pytest.raises(KeyboardInterrupt):
            run(folder, self.experiment, seed=seed, quick=quick)
        self.called_at, self.thrown = -1, []


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_run_goes_on_at_the_piece_at_which_it_was_interrupted(table: Table, tmp_path: Path) -> None:
    [whole] = run(tmp_path / "at once", table.experiment)
    table.interrupted(tmp_path, 3)
    [found] = run(tmp_path, table.experiment)
    assert table.thrown == [3, 4]
    assert found.result == whole.result
    assert names(tmp_path / "at once") == ["dice.json", "dice.png"], "no piece outlives the result"
    assert names(tmp_path) == ["at once", "dice.json", "dice.png"]


def test_pieces_of_another_seed_size_or_code_are_not_used(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.interrupted(tmp_path, 3)
    table.interrupted(tmp_path, 1, seed=2)
    table.interrupted(tmp_path, 1, quick=True)
    monkeypatch.setattr(origin, "code", lambda: "2")
    run(tmp_path, table.experiment)
    assert table.thrown == [0, 1, 2, 3, 4]
    assert names(tmp_path) == ["dice.json", "dice.png"], "nobody can go on from what other code has made"


def test_what_another_run_has_kept_is_left_to_it(table: Table, tmp_path: Path) -> None:
    table.interrupted(tmp_path, 3)
    run(tmp_path, table.experiment, seed=2)
    table.thrown = []
    run(tmp_path, table.experiment)
    assert table.thrown == [3, 4]
    assert names(tmp_path) == ["dice.json", "dice.png"]


@pytest.mark.parametrize("damage", [b"", b'{"eyes": 3', b'{"eyes": "many"}', b"\xff\xfe"])
def test_a_piece_that_cannot_be_read_is_made_again(table: Table, tmp_path: Path, damage: bytes) -> None:
    table.interrupted(tmp_path, 3)
    [piece] = tmp_path.rglob("1.json")
    piece.write_bytes(damage)
    run(tmp_path, table.experiment)
    assert table.thrown == [1, 3, 4]


def test_progress_counts_what_was_kept(table: Table, tmp_path: Path) -> None:
    said: list[tuple[int, int]] = []
    work = table.experiment.work
    assert isinstance(work, Pieces)
    table.called_at = 1
    kept = work.kept_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        kept(quick=True, seed=1, progress=lambda *_: None)
    table.called_at = -1
    kept(quick=True, seed=1, progress=lambda *now: said.append(now))
    assert said == [(10, 20), (15, 20), (20, 20)]


def test_without_a_folder_nothing_is_kept(table: Table) -> None:
    assert table.experiment.run(seed=3) == table.experiment.run(seed=3)
    assert len(table.thrown) == 10
