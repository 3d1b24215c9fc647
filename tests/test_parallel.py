"""Parts on a cluster: real schedulers and workers, one of them killed, away, or of another version."""

import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

import cloakwork
from cloakwork import parallel
from cloakwork.errors import ClusterError, InputError
from cloakwork.parallel import PartOutcome, WorkPart, part_outcomes
from tests.cluster import cluster_processes, held_up, kill
from tests.ports import free_port
from tests.waiting import until

ONE = [WorkPart("one", -1)]


def squares(folder: Path, number: int, **where: Any) -> Iterator[PartOutcome]:
    return part_outcomes(held_up, [WorkPart(str(k), (folder, k)) for k in range(number)], **where)


def kill_one(folder: Path) -> int:
    """Kill a process that runs a part, and let all parts end."""
    until(lambda: len(list(folder.glob("*.[0-9]*"))) >= 2, "no part has begun")
    victim = int(next(folder.glob("*.[0-9]*")).suffix[1:])
    kill(victim)
    (folder / "go").touch()
    return victim


def test_a_part_whose_worker_is_killed_is_done_elsewhere_and_a_part_that_fails_is_reported(tmp_path: Path) -> None:
    victims: list[int] = []
    (tmp_path / "logs").mkdir()
    with cluster_processes(tmp_path / "logs", 2) as processes:
        threading.Thread(target=lambda: victims.append(kill_one(tmp_path))).start()
        outcomes = {found.part.name: found for found in squares(tmp_path, 15, scheduler=processes.address)}
    assert "ValueError" in outcomes.pop("13").failure
    assert {name: found.result[0] for name, found in outcomes.items()} == {str(k): k * k for k in range(15) if k != 13}
    assert victims[0] not in {found.result[1] for found in outcomes.values()}


def test_a_process_of_this_machine_that_dies_is_an_error(tmp_path: Path) -> None:
    threading.Thread(target=kill_one, args=(tmp_path,)).start()
    with pytest.raises(ClusterError, match="died"):
        list(squares(tmp_path, 4, workers=2))


def test_processes_of_this_machine_leave_an_interrupt_to_the_program_that_started_them() -> None:
    [found] = part_outcomes(signal.getsignal, [WorkPart("interrupt", signal.SIGINT)], workers=2)
    assert found.result is signal.SIG_IGN


def test_a_worker_with_other_source_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(cloakwork.__file__).parent, other / "cloakwork", ignore=shutil.ignore_patterns("*.nb[ic]"))
    with (other / "cloakwork" / "errors.py").open("a") as file:
        file.write("# another version\n")
    with cluster_processes(tmp_path, 0) as processes:
        processes.add_worker(PYTHONPATH=str(other))
        with pytest.raises(ClusterError, match="source of cloakwork") as refused:
            next(part_outcomes(abs, ONE, scheduler=processes.address))
    assert refused.value.versions != parallel.versions()


def test_a_scheduler_that_is_away_has_no_worker_or_has_no_address_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "ANSWER_S", 0.5)
    with pytest.raises(ClusterError, match="Dask scheduler"):
        next(part_outcomes(abs, ONE, scheduler=f"tcp://127.0.0.1:{free_port()}"))
    with pytest.raises(InputError, match="no address"):
        next(part_outcomes(abs, ONE, scheduler="nonsense://x:y"))
    with cluster_processes(tmp_path, 0) as processes:
        connect: Any = distributed.Client
        connect(processes.address, timeout=300).close()  # it has started
        monkeypatch.setattr(parallel, "ANSWER_S", 3.0)
        with pytest.raises(ClusterError, match="no worker"):
            next(part_outcomes(abs, ONE, scheduler=processes.address))
