"""Runs that continue where they stopped, and what makes a kept result invalid."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from cloakwork.errors import CloakworkError, InputError
from papers import EXPERIMENTS, Experiment, Run
from papers.experiment import Size, stream
from papers.runner import run_all
from papers.store import read
from tests.papers.conftest import Cup
from tests.papers.kit import DICE, RECORDING, Dice, names, quick, run_here


def test_a_valid_result_is_not_run_again(cup: Cup, tmp_path: Path) -> None:
    first, second = (run_here(tmp_path, cup.experiment)[0] for _ in range(2))
    assert cup.thrown == [1]
    assert first.result == second.result
    assert (first.kept, second.kept) == (False, True)
    assert names(tmp_path) == ["dice.json", "dice.png"]


def test_another_seed_size_or_behaviour_is_run_again(cup: Cup, tmp_path: Path) -> None:
    run_here(tmp_path, cup.experiment, quick=True)
    run_here(tmp_path, cup.experiment, seed=2, quick=True)
    run_here(tmp_path, cup.experiment, seed=2)
    assert cup.thrown == [1, 2, 2]
    cup.loaded = 1
    assert "thrown[0]" in read("dice", tmp_path).difference()
    run_here(tmp_path, cup.experiment, seed=2)
    assert cup.thrown == [1, 2, 2, 2]
    assert read("dice", tmp_path).difference() == ""


def test_on_another_processor_a_few_numbers_may_differ(
    cup: Cup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [record] = run_here(tmp_path, cup.experiment)
    for differing, stale_here, stale_there in ((0, False, False), (15, True, False), (16, True, True)):
        numbers = (1.0,) * (100 - differing) + (2.0,) * differing
        monkeypatch.setattr(Experiment, "probe", lambda *_: {str(k): 1.0 for k in range(100)})
        for processor, stale in ((record.processor, stale_here), ("another", stale_there)):
            probed = replace(record, signature=numbers, processor=processor)
            assert bool(probed.difference()) is stale, (differing, processor)


def test_other_data_is_run_again(cup: Cup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    data.mkdir()
    records = run_here(out, cup.experiment)
    monkeypatch.setenv("CLOAKWORK_DATA", str(data))
    for content in (None, "one", "one", "two"):
        if content is not None:
            (data / RECORDING).write_text(content, encoding="utf-8")
        records += run_here(out, cup.experiment)
    assert cup.thrown == [1, 1, 1]
    assert [one.lacking for one in records] == [(RECORDING.name,)] * 2 + [()] * 3
    assert len({one.data[RECORDING.name] for one in records}) == 3


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda content: content[:50],
    "not UTF-8": lambda content: content.replace(b"What dice show", b"\xff\xfe"),
    "time in words": lambda content: content.replace(b'"seconds": 0.0', b'"seconds": "some"'),
    "signature in words": lambda content: content.replace(b'"signature": "1"', b'"signature": "one"'),
    "seed in a list": lambda content: content.replace(b'"seed": 1', b'"seed": [1]'),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_damaged_file_is_not_a_result(cup: Cup, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    run_here(tmp_path, cup.experiment)
    path = tmp_path / "dice.json"
    content = path.read_bytes()
    assert spoil(content) != content
    path.write_bytes(spoil(content))
    with pytest.raises(InputError) as refused:
        read("dice", tmp_path)
    assert refused.value.values["experiment"] == "dice"
    run_here(tmp_path, cup.experiment)
    assert cup.thrown == [1, 1]


def test_an_interrupted_write_leaves_no_picture_beside_other_numbers(
    cup: Cup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(tmp_path, cup.experiment)
    move = Path.replace

    def stop(path: Path, target: Path) -> Path:
        if target.suffix == ".json":
            raise KeyboardInterrupt
        return move(path, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        run_here(tmp_path, cup.experiment, seed=2)
    monkeypatch.undo()
    assert names(tmp_path) == ["dice.png"]


def test_a_parallel_run_gives_the_same_and_a_failure_is_raised_at_the_end(tmp_path: Path) -> None:
    chosen = [EXPERIMENTS["sensitivity"], Experiment("nowhere", "", Dice, DICE.work, minutes=9.0)]
    seen: dict[str, float] = {}
    records = run_all(chosen, tmp_path, quick=True, seed=2, jobs=2, progress=lambda *now: seen.update([now]))
    with pytest.raises(CloakworkError, match="nowhere"):
        list(records)
    assert names(tmp_path) == ["sensitivity.json", "sensitivity.png"]
    assert seen.get("nowhere", 0.0) < 1
    assert seen["sensitivity"] == 1.0
    record = read("sensitivity", tmp_path)
    assert record.result == quick("sensitivity")
    assert record.difference() == ""


@dataclass(frozen=True)
class Throw:
    eyes: int


class Thrower:
    """Throws dice one at a time, and may be interrupted."""

    def __init__(self) -> None:
        self.thrown: list[int] = []
        self.stop_at, self.loaded = -1, 0
        self.experiment = Experiment("dice", "What dice show", Dice, self.work)

    def work(self, run: Run) -> Dice:
        if run.size is Size.PROBE:
            return Dice((self.loaded,))
        numbers = run.each(range(run.choose(5, 2, 1)))
        parts = [run.part(str(number), Throw, partial(self.throw, run.seed, number)) for number in numbers]
        return Dice(tuple(part.eyes for part in parts))

    def throw(self, seed: int, number: int) -> Throw:
        if number == self.stop_at:
            raise KeyboardInterrupt
        self.thrown.append(number)
        return Throw(int(stream(seed, number).integers(1, 7)))

    def interrupted(self, folder: Path, at: int, *, seed: int = 1, quick: bool = False) -> None:
        self.stop_at = at
        with pytest.raises(KeyboardInterrupt):
            run_here(folder, self.experiment, seed=seed, quick=quick)
        self.stop_at, self.thrown = -1, []


@pytest.fixture
def thrower(register: Callable[..., None]) -> Thrower:
    thrower = Thrower()
    register(thrower.experiment)
    return thrower


def test_a_run_continues_at_the_part_where_it_was_interrupted(thrower: Thrower, tmp_path: Path) -> None:
    [whole] = run_here(tmp_path / "at once", thrower.experiment)
    thrower.interrupted(tmp_path, 3)
    [found] = run_here(tmp_path, thrower.experiment)
    assert thrower.thrown == [3, 4]
    assert found.result == whole.result
    assert names(tmp_path / "at once") == ["dice.json", "dice.png"], "no part outlives the result"
    assert names(tmp_path) == ["at once", "dice.json", "dice.png"]


def test_parts_of_another_seed_size_or_behaviour_are_not_used(thrower: Thrower, tmp_path: Path) -> None:
    thrower.interrupted(tmp_path, 3)
    thrower.interrupted(tmp_path, 1, seed=2)
    thrower.interrupted(tmp_path, 1, quick=True)
    thrower.loaded = 1
    run_here(tmp_path, thrower.experiment)
    assert thrower.thrown == [0, 1, 2, 3, 4]
