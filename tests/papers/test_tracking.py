"""People followed over time, all methods on the same readings."""

import pytest

from papers import Run
from papers.experiment import Size
from papers.experiments import tracking
from papers.experiments.tracking import RECORDED, FollowedScenes, Method


def test_the_recorded_movement_is_a_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "QUICK", ((1,), 2, 4, 2, 4))
    finding = tracking.EXPERIMENT.work(Run(1, Size.QUICK))
    assert isinstance(finding, FollowedScenes)
    assert [scene.kind for scene in finding.scenes][-1] == RECORDED
    assert all(len(scene.methods) == len(Method) for scene in finding.scenes)
