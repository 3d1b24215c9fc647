"""People followed over time, all methods on the same readings."""

from pathlib import Path

import pytest

from papers import Run
from papers.experiment import Size
from papers.experiments import tracking
from papers.experiments.tracking import RECORDED, FollowedScenes, Method
from papers.recordings import POSITIONS
from tests.papers.test_movement import written


def test_the_recorded_movement_is_a_scene_where_it_is_available(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written(tmp_path)
    monkeypatch.setenv("CLOAKWORK_DATA", str(tmp_path))
    monkeypatch.setattr(tracking, "QUICK", ((1,), 2, 4, 2, 4))
    finding = tracking.EXPERIMENT.work(Run(1, Size.QUICK))
    assert isinstance(finding, FollowedScenes)
    assert (tmp_path / POSITIONS).exists()
    assert finding.recorded
    assert [scene.kind for scene in finding.scenes][-1] == RECORDED
    assert all(len(scene.methods) == len(Method) for scene in finding.scenes)
