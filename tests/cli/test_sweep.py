"""`cloakwork plan --sweep`: settings compared on simulated people, a recommendation and warnings."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.site.test_tradeoff import SITE


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small site, on a machine with one core: other processes would take longer to start than to simulate."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def test_a_sweep_prints_recommends_and_warns(succeed: Run, site: Path) -> None:
    words = (
        "plan",
        site,
        "--sweep",
        "--try",
        "epsilon=0.001,8",
        "--frames",
        "40",
        "--need",
        "room 80%",
    )
    done = succeed(*words)
    assert "epsilon = 8" in done.out
    assert "no better than guessing" in done.out
