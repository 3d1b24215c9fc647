"""A laboratory that has dice and nothing else."""

from collections.abc import Callable

import pytest

from papers import experiments, recordings, report
from papers.experiment import Experiment, Run, Size
from tests.papers.kit import RECORDING, Dice


class Cup:
    """Throws dice and counts how often; `loaded` changes what the probe shows."""

    def __init__(self) -> None:
        self.thrown: list[int] = []
        self.loaded = 0
        self.experiment = Experiment(
            "dice", "What dice show", Dice, self.work, shows="Some paper, Figure 1", data=(RECORDING,)
        )

    def work(self, run: Run) -> Dice:
        if run.size is Size.PROBE:
            return Dice(thrown=(run.seed + self.loaded,))
        self.thrown.append(run.seed)
        return Dice(thrown=(run.seed, 6) if run.size is Size.QUICK else (run.seed, 6, 6))


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace all experiments by others."""

    def replace(*chosen: Experiment) -> None:
        known = {one.name: one for one in chosen}
        for module in (experiments, report):
            monkeypatch.setattr(module, "EXPERIMENTS", known)

    return replace


@pytest.fixture
def cup(
    register: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Cup:
    """The laboratory with dice only, whose recording is a text of one line."""
    cup = Cup()
    data = tmp_path_factory.mktemp("recordings")
    (data / RECORDING).write_text("one", encoding="utf-8")
    monkeypatch.setattr(recordings, "FOLDER", data)
    register(cup.experiment)
    return cup
