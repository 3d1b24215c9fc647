"""Parts on a cluster: real schedulers and workers, one of them killed, away, or of another version."""

import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

import cloakwork
from cloakwork import parallel
from cloakwork.errors import ClusterError, InputError, MissingExtraError
from cloakwork.parallel import Cluster, PartOutcome
from tests.cluster import cluster_processes, held_up, kill
from tests.ports import free_port
from tests.waiting import until


def squares(cluster: Cluster, folder: Path, numbers: range) -> Iterator[PartOutcome]:
    return cluster.run(held_up, ((str(number), (folder, number)) for number in numbers))


def test_a_part_whose_worker_is_killed_is_done_elsewhere_and_a_part_that_fails_is_reported(tmp_path: Path) -> None:
    victim: list[int] = []

    def kill_one() -> None:
        until(lambda: len(list(tmp_path.glob("*.[0-9]*"))) >= 2, "no part has begun")
        victim.append(int(next(tmp_path.glob("*.[0-9]*")).suffix[1:]))
        kill(victim[0])
        (tmp_path / "go").touch()

    (tmp_path / "logs").mkdir()
    with cluster_processes(tmp_path / "logs", 2) as processes, Cluster(processes.address) as cluster:
        threading.Thread(target=kill_one).start()
        outcomes = {outcome.name: outcome for outcome in squares(cluster, tmp_path, range(15))}
    failed = outcomes.pop("13")
    assert "ValueError" in failed.failure
    assert {name: outcome.result[0] for name, outcome in outcomes.items()} == {
        str(number): number * number for number in range(15) if number != 13
    }
    assert victim[0] not in {outcome.result[1] for outcome in outcomes.values()}


def test_workers_of_this_machine_survive_an_interrupt_so_that_none_prints_a_traceback() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Cluster(workers=1) as cluster:
        found = next(cluster.run(signal.getsignal, [("interrupt", signal.SIGINT)]))
    assert found.result is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


def test_a_worker_with_other_source_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(cloakwork.__file__).parent, other / "cloakwork", ignore=shutil.ignore_patterns("*.nb[ic]"))
    with (other / "cloakwork" / "errors.py").open("a") as file:
        file.write("# another version\n")
    with cluster_processes(tmp_path, 0) as processes:
        processes.add_worker(PYTHONPATH=str(other))
        with pytest.raises(ClusterError, match="source of cloakwork") as refused, Cluster(processes.address):
            pass
    assert refused.value.versions != parallel.versions()


def test_a_scheduler_that_is_away_has_no_worker_or_has_no_address_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "ANSWER_S", 0.5)
    with pytest.raises(ClusterError, match="Dask scheduler"), Cluster(f"tcp://127.0.0.1:{free_port()}"):
        pass
    with pytest.raises(InputError, match="no address"), Cluster("nonsense://x:y"):
        pass
    monkeypatch.setattr(parallel, "ANSWER_S", 30.0)
    with cluster_processes(tmp_path, 0) as processes:
        connect: Any = distributed.Client
        connect(processes.address, timeout=300).close()  # it has started
        monkeypatch.setattr(parallel, "ANSWER_S", 3.0)
        with pytest.raises(ClusterError, match="no worker"), Cluster(processes.address):
            pass


def test_a_missing_dask_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cloakwork\[dask\]'"), Cluster():
        pass
