"""What tests of the laboratory share."""

import pytest

from papers import Experiment, origin, records, registry, report
from papers.experiment import Progress
from tests.papers.dice_kit import RECORDING
from tests.papers.test_laboratory import Dice


@pytest.fixture
def dice(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The laboratory with dice only, by code "1" and without recordings; counts how often they are thrown."""
    thrown: list[int] = []

    def work(*, quick: bool, seed: int, progress: Progress) -> Dice:
        thrown.append(seed)
        return Dice((seed, 6) if quick else (seed, 6, 6))

    experiment = Experiment("dice", "What dice show", Dice, work, shows=("Some paper, Figure 1",), data=(RECORDING,))
    for module in (origin, records):
        monkeypatch.setattr(module, "code", lambda: "1")
    for module in (registry, report):
        monkeypatch.setattr(module, "EXPERIMENTS", {"dice": experiment})
    monkeypatch.delenv("CLOAKWORK_DATA", raising=False)
    return thrown
