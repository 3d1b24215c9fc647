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


def test_a_sweep_as_json_has_every_setting_with_errors(succeed: Run, site: Path) -> None:
    values = succeed(
        "plan", site, "--sweep", "--try", "epsilon=8", "--frames", "30", "--need", "rooms 1%", "--json"
    ).values
    [row] = values["settings"]
    assert (row["alpha"], row["epsilon"], row["readings"], row["sensors"]) == (0.05, 8.0, 4, 12)
    assert 0.5 < row["followed"]["settled"]["room"]["value"] <= 1
    assert row["followed"]["live"]["count"]["error"] >= 0
    assert values["recommended"]["epsilon"] == 8.0
