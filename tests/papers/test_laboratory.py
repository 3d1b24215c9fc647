"""The registry, results and how they travel."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cloakwork.errors import InputError
from papers import EXPERIMENTS, Experiment, Finding, Goal, Result, Table, find, read_result
from papers.experiment import Progress, part, stream


@dataclass(frozen=True)
class Dice(Finding):
    thrown: tuple[int, ...]
    seconds: float = field(compare=False, default=0.0)

    def tables(self) -> tuple[Table, ...]:
        return (Table("Dice", ("throw", "eyes"), tuple((str(k), str(eyes)) for k, eyes in enumerate(self.thrown))),)

    def draw(self, figure: Figure) -> None:
        figure.add_subplot().plot(self.thrown)

    def goals(self) -> tuple[Goal, ...]:
        return (Goal("a six", str(max(self.thrown)), max(self.thrown) == 6),)


def throw(*, quick: bool, seed: int, progress: Progress) -> Dice:
    progress(1, 1)
    return Dice(tuple(stream(seed, 0).integers(1, 7, 2 if quick else 20).tolist()))


DICE = Experiment("dice", "What dice show", Dice, throw)


def test_a_run_depends_on_its_seed_alone() -> None:
    assert DICE.run(seed=3) == DICE.run(seed=3)
    assert DICE.run(seed=3) != DICE.run(seed=4)


def test_quick_is_smaller_and_its_goals_are_not_judged() -> None:
    quick, full = DICE.run(quick=True), DICE.run()
    assert isinstance(quick.finding, Dice)
    assert len(quick.finding.thrown) == 2
    assert [table.title for table in quick.tables()] == ["Dice"]
    assert [table.title for table in full.tables()] == ["Dice", "Goals"]
    assert full.tables()[-1].rows == (("a six", "6", "met"),)
    assert full.met


def test_a_missed_goal_is_said() -> None:
    result = Result("dice", "What dice show", False, 1, Dice((1, 2)))
    assert result.tables()[-1].rows == (("a six", "2", "MISSED"),)
    assert not result.met


def test_progress_reaches_the_caller() -> None:
    seen: list[tuple[int, int]] = []
    DICE.run(quick=True, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]


def test_parts_of_the_work_add_up() -> None:
    seen: list[tuple[int, int]] = []
    first = part(lambda *said: seen.append(said), 0, 30, 100)
    second = part(lambda *said: seen.append(said), 30, 70, 100)
    first(3, 3)
    second(1, 2)
    second(0, 0)
    assert seen == [(30, 100), (65, 100), (30, 100)]


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_a_seed_that_is_not_a_whole_number_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match="whole number, 0 or above"):
        DICE.run(seed=seed)


def test_streams_of_different_parts_are_different() -> None:
    assert stream(1, 2, 3).random() == stream(1, 2, 3).random()
    keys = [(1,), (1, 0), (1, 0, 0), (1, 2), (2, 1)]
    assert len({stream(*key).random() for key in keys}) == len(keys)


@pytest.mark.parametrize("name", ["nonsense", "", "Estimators"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match="estimators, vicinities"):
        find(name)


@pytest.mark.parametrize("name", ["typicl", "Typical", "typical "])
def test_a_name_that_is_nearly_right_is_mended(name: str) -> None:
    with pytest.raises(InputError, match=r"did you mean typical\? The experiments are typical"):
        find(name)


def test_names_are_unique_short_and_lead_to_their_experiment() -> None:
    assert {"estimators", "vicinities"} <= set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        assert find(name) is experiment
        assert name.replace("-", "").isalnum()
        assert name.islower()
        assert len(experiment.title) < 90
        assert not experiment.title.endswith(".")


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"experiment": "estimators", "title": "", "finding": {"cases": 1}}']
)
def test_what_is_not_a_result_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not the JSON of a result"):
        read_result(text)


def test_the_json_of_a_result_has_nothing_but_plain_values() -> None:
    values = DICE.run(quick=True, seed=5).to_json()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert {key: values[key] for key in ("experiment", "title", "quick", "seed")} == {
        "experiment": "dice",
        "title": "What dice show",
        "quick": True,
        "seed": 5,
    }


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture_is_written_in_the_format_of_its_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"dice.{kind}"
    DICE.run(quick=True).draw(path)
    assert path.read_bytes()[:5] == {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}[kind]
