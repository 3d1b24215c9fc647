"""Long commands on the cluster of a real scheduler give what they give here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cluster import Processes, cluster_processes
from tests.site.test_tradeoff import SITE


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with cluster_processes(tmp_path_factory.mktemp("cluster"), 1) as running:
        yield running


def test_a_sweep_has_the_same_numbers_on_a_cluster(
    succeed: Run, processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    site = tmp_path / "site.toml"
    site.write_text(SITE)
    words = ("plan", site, "--sweep", "--try", "epsilon=8", "--frames", "24", "--json")
    assert succeed(*words, "--scheduler", processes.address).values == succeed(*words).values
