"""Runs that go on where they were, and what makes a result another one."""

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import getsource
from pathlib import Path

import pytest

import cloakwork
from cloakwork.errors import CloakworkError, InputError
from papers import EXPERIMENTS, Experiment, Measure, experiments, origin, records, registry, runs
from papers.experiment import Progress
from tests.papers.dice_kit import RECORDING, names, run
from tests.papers.test_laboratory import DICE, Dice


def test_what_is_there_is_not_run_again(dice: list[int], tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert dice == [1]
    assert first[0].result == second[0].result
    assert names(tmp_path) == ["dice.json", "dice.png"]


def test_another_seed_another_size_and_other_code_are_run_again(
    dice: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, quick=True)
    run(tmp_path, seed=2, quick=True)
    run(tmp_path, seed=2)
    monkeypatch.setattr(origin, "code", lambda: "2")
    run(tmp_path, seed=2)
    assert dice == [1, 2, 2, 2]


def test_a_quick_run_does_not_replace_a_full_one(dice: list[int], tmp_path: Path) -> None:
    before = run(tmp_path)[0].result
    with pytest.raises(InputError, match="has dice at full size, which a quick run would replace"):
        run(tmp_path, quick=True)
    assert dice == [1]
    assert records.read("dice", tmp_path).result == before


def test_what_was_there_already_is_told_from_what_is_new(dice: list[int], tmp_path: Path) -> None:
    assert [run(tmp_path)[0].kept for _ in range(2)] == [False, True]


def test_other_data_is_run_again(dice: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    data.mkdir()
    seen = [run(out)[0].origin]
    monkeypatch.setenv("CLOAKWORK_DATA", str(data))
    for content in (None, "one", "one", "two"):
        if content is not None:
            (data / RECORDING).write_text(content, encoding="utf-8")
        seen.append(run(out)[0].origin)
    assert dice == [1, 1, 1]
    assert [one.lacking for one in seen] == [(RECORDING.name,)] * 2 + [()] * 3
    assert len({one.data[RECORDING.name] for one in seen}) == 3
    assert len({one.code for one in seen}) == 1


def test_a_picture_that_is_gone_is_made_again(dice: list[int], tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "dice.png").unlink()
    run(tmp_path)
    assert dice == [1, 1]
    assert names(tmp_path) == ["dice.json", "dice.png"]


def _half(content: bytes) -> bytes:
    return content[:50]


def _not_utf8(content: bytes) -> bytes:
    return content.replace(b"What dice show", b"\xff\xfe")


def _time_in_words(content: bytes) -> bytes:
    return content.replace(b'"seconds": 0.0', b'"seconds": "some"')


def _code_in_a_list(content: bytes) -> bytes:
    return content.replace(b'"code": "1"', b'"code": ["1"]')


def _seed_in_words(content: bytes) -> bytes:
    return content.replace(b'"seed": 1', b'"seed": [1]')


@pytest.mark.parametrize("spoil", [_half, _not_utf8, _time_in_words, _code_in_a_list, _seed_in_words])
def test_a_damaged_file_is_no_result(dice: list[int], tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    run(tmp_path)
    path = tmp_path / "dice.json"
    content = path.read_bytes()
    assert spoil(content) != content
    path.write_bytes(spoil(content))
    with pytest.raises(InputError, match=r"dice\.json is not the JSON of a result: write it with"):
        records.read("dice", tmp_path)
    run(tmp_path)
    assert dice == [1, 1]


def test_a_result_under_another_name_is_refused(dice: list[int], tmp_path: Path) -> None:
    run(tmp_path)
    for kind in ("json", "png"):
        (tmp_path / f"cards.{kind}").write_bytes((tmp_path / f"dice.{kind}").read_bytes())
    with pytest.raises(InputError, match=r"cards\.json is a result of dice: write it with .*lab run cards"):
        records.read("cards", tmp_path)
    cards = Experiment("cards", "What cards show", Dice, DICE.work)
    assert not records.is_done(cards, tmp_path, quick=False, seed=1)


def test_an_interrupted_write_leaves_no_picture_beside_other_numbers(
    dice: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    replace = Path.replace

    def stop(path: Path, target: Path) -> Path:
        if target.suffix == ".json":
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, seed=2)
    monkeypatch.undo()
    assert names(tmp_path) == ["dice.png"]


def test_a_folder_that_is_a_file_is_refused(dice: list[int], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file: give a folder"):
        run(tmp_path / "file")
    assert dice == []


DEPENDS = {
    "__init__.py": True,
    "_compile.py": True,
    "auditing/sources/mqtt.py": False,
    "cli/app.py": False,
    "demo/show.py": False,
    "lab/report.py": False,
    "lab/runs.py": True,
    "sensor/wire.py": True,
}


@pytest.mark.parametrize("name", DEPENDS)
def test_a_fingerprint_changes_with_what_a_result_depends_on(name: str, tmp_path: Path) -> None:
    for path in (tmp_path / one for one in DEPENDS):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    before = origin.fingerprint(tmp_path, {"numpy": "2.0"})
    (tmp_path / name).write_text("2")
    assert (origin.fingerprint(tmp_path, {"numpy": "2.0"}) != before) is DEPENDS[name]
    (tmp_path / name).write_text("1")
    assert origin.fingerprint(tmp_path, {"numpy": "2.0"}) == before
    assert origin.fingerprint(tmp_path, {"numpy": "2.1"}) != before


def test_all_that_experiments_import_is_in_the_fingerprint() -> None:
    root = Path(cloakwork.__file__).parent
    code = (
        "import sys; before = set(sys.modules); import papers.registry; "
        "print(*(getattr(sys.modules[one], '__file__', '') for one in set(sys.modules) - before "
        "if one.split('.')[0] == 'cloakwork'))"
    )
    files = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    used = {Path(file).relative_to(root).as_posix() for file in files}
    assert {"_compile.py", "lab/experiments/typical.py"} <= used <= set(origin.sources(root))
    assert len(origin.code()) == 16
    assert set(origin.libraries()) == {"matplotlib", "networkx", "numba", "numpy", "scipy"}


@pytest.mark.parametrize("name", experiments.ORDER)
def test_an_experiment_that_uses_recordings_says_which(name: str) -> None:
    module = import_module(f"{experiments.__name__}.{name}")
    assert bool(module.EXPERIMENT.data) is ("data_file(" in getsource(module))


def test_experiments_side_by_side_give_what_they_give_alone(tmp_path: Path) -> None:
    chosen = [EXPERIMENTS[name] for name in ("sensitivity", "graph-table")]
    seen: dict[str, float] = {}
    done = list(
        runs.run_all(
            chosen, tmp_path, quick=True, seed=3, jobs=2, progress=lambda name, part: seen.update({name: part})
        )
    )
    assert seen == {"sensitivity": 1.0, "graph-table": 1.0}
    for record in done:
        assert record.result == EXPERIMENTS[record.result.name].run(quick=True, seed=3)


def test_a_failure_in_a_process_is_said_when_the_others_are_done(tmp_path: Path) -> None:
    chosen = [EXPERIMENTS["graph-table"], Experiment("nowhere", "", Dice, DICE.work, minutes=9.0)]
    seen: dict[str, float] = {}
    with pytest.raises(CloakworkError, match=r"nowhere failed.*is not an experiment"):
        list(
            runs.run_all(
                chosen, tmp_path, quick=True, seed=1, jobs=2, progress=lambda name, part: seen.update({name: part})
            )
        )
    assert names(tmp_path) == ["graph-table.json", "graph-table.png"]
    assert seen.get("nowhere", 0.0) < 1
    assert seen["graph-table"] == 1


def test_a_failure_in_turn_is_said_when_the_others_are_done(
    dice: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*, quick: bool, seed: int, progress: Progress) -> Dice:
        raise ValueError("no table")

    cards = Experiment("cards", "What cards show", Dice, fail, minutes=9.0)
    with pytest.raises(CloakworkError, match=r"^cards failed: ValueError: no table$"):
        run(tmp_path, cards, *registry.EXPERIMENTS.values())
    assert names(tmp_path) == ["dice.json", "dice.png"]
    with pytest.raises(ValueError, match=r"^no table$"):
        run(tmp_path, cards)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (Measure("a", 1.0, 0.1), Measure("a", 1.6, 0.1), True),
        (Measure("a", 1.0, 0.1), Measure("a", 1.8, 0.1), False),
        (Measure("a", 1.0), Measure("a", 1.0 + 1e-9), True),
        (Measure("a", 1.0), Measure("a", 1.001), False),
        (Measure("a", 1.0, slack=0.2), Measure("a", 1.1), True),
        (Measure("a", float("nan")), Measure("a", 1.0, 1.0), False),
    ],
)
def test_measures_agree_within_the_errors_of_both(first: Measure, second: Measure, same: bool) -> None:
    assert first.agrees(second) is same
    assert second.agrees(first) is same
