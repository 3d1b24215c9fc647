"""`cloakwork recover --out FOLDER`: stretches of time on a cluster, with a worker killed, continued, and repeated."""

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloakwork.collect import open_store
from cloakwork.readings import HEADER, MergedFrames, ReadingScale, ReadingsFile, recover_part, stretch_length, stretches
from cloakwork.site import load_site
from tests.cli.conftest import Run
from tests.cli.test_recover_tracks import PERIOD, SITE, START
from tests.cluster import cluster_processes
from tests.collect.small_sites import make, readings
from tests.waiting import until

DAY = 86_400_000


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


@pytest.fixture
def days(site: Path, tmp_path: Path) -> list[Path]:
    """Four days of which six frames each were recorded, in a CSV file and a Parquet file that share the sensors."""
    office = load_site(site)
    cloak, rng = office.cloak(), np.random.default_rng(1)
    steps = np.rint(office.baselines / cloak.steps + rng.normal(size=(24, 12)) * cloak.sigmas / cloak.steps)
    times = START + np.repeat(np.arange(4), 6) * DAY + np.tile(np.arange(6), 4) * PERIOD
    files = [tmp_path / "first.csv", tmp_path / "rest.csv"]
    for part, path in zip((slice(0, 6), slice(6, 12)), files, strict=True):
        lines = [
            f"{time},{sensor},{seq},{int(value)}\n"
            for seq, (time, row) in enumerate(zip(times, steps, strict=True))
            for sensor, value in zip(office.sensor_ids[part], row[part], strict=True)
        ]
        path.write_text(",".join(HEADER) + "\n" + "".join(lines))
    rows = [line.split(",") for line in files[1].read_text().splitlines()[1:]]
    columns = [
        pa.array(list(map(int, column)) if k != 1 else column) for k, column in enumerate(zip(*rows, strict=True))
    ]
    pq.write_table(pa.table(columns, names=list(HEADER)), tmp_path / "rest.parquet")
    return [files[0], tmp_path / "rest.parquet"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_killed_worker_changes_no_bit_and_finished_parts_are_not_done_again(
    succeed: Run, site: Path, days: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here, alone = tmp_path / "there", tmp_path / "here", tmp_path / "alone"
    with cluster_processes(tmp_path, 1) as processes:
        victim = processes.add_worker()

        def kill_one() -> None:
            until(lambda: there.is_dir() and any(there.glob("office-*.parquet")))
            victim.kill()

        threading.Thread(target=kill_one).start()
        values = succeed("recover", site, *days, "--scheduler", processes.address, "--out", there, "--json").values
        assert len(values["done"]) == 4
        assert not values["failed"]
        (there / "office-20251117T0000.parquet").write_bytes(b"half a fi")
        assert len(contents(there)) == 4
        again = succeed("recover", site, *days, "--scheduler", processes.address, "--out", there, "--json").values
        assert (again["done"], again["kept"]) == (["office-20251117T0000"], 3)
    for folder, cores in ((here, 2), (alone, 1)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        succeed("recover", site, *days, "--out", folder)
    assert contents(there) == contents(here) == contents(alone)
    whole = pq.read_table(there)
    assert len(set(whole["time"].to_pylist())) == 24
    assert whole.schema.field("time").type == whole.schema.field("stretch").type == pa.timestamp("ms", "UTC")
    assert set(whole["sensors"].to_pylist()) == {12}


def test_parts_of_a_store_go_on_where_they_stopped_and_other_code_makes_them_again(
    succeed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, store = make(tmp_path), tmp_path / "store.db"
    per_part = stretch_length(watched.site) // watched.schedule.period_ms
    with open_store(str(store)) as opened:
        opened.plans.begin(watched.name, ReadingScale.of(watched.plan, "°C"), 1)
        frames = [part * per_part + k for part in range(3) for k in range(2)]
        opened.readings.add([row for number in frames for row in readings(watched, number)])
    found = tmp_path / "found"

    def again() -> tuple[int, int]:
        values = succeed("recover", tmp_path / "site.toml", "--from-store", store, "--out", found, "--json").values
        assert not values["failed"]
        return len(values["done"]), values["kept"]

    assert again() == (3, 0)
    before = contents(found)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # this process does the rest
    next(found.iterdir()).unlink()
    assert again() == (1, 2)
    assert contents(found) == before
    module = sys.modules["cloakwork.readings.stretches"]  # its face has a function of that name
    monkeypatch.setattr(module, "versions", lambda: {"source of cloakwork": "another"})
    assert again() == (3, 0)
    assert again() == (0, 3)


def test_an_interrupted_recovery_goes_on_in_its_folder(
    run: Run, site: Path, days: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    done: list[object] = []

    def interrupted(part: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(part)
        return recover_part(part)

    with monkeypatch.context() as patched:
        patched.setattr("cloakwork.cli.recover.recover_part", interrupted)
        stopped = run("recover", site, *days, "--alone", "--out", tmp_path / "found")
    assert stopped.code == 130
    assert "Finished parts are in" in stopped.err
    again = run("recover", site, *days, "--alone", "--out", tmp_path / "found", "--json").values
    assert (len(again["done"]), again["kept"]) == (2, 2)


def test_stretches_hold_every_frame_once_with_those_around_it(site: Path, days: list[Path]) -> None:
    office = load_site(site)
    files = MergedFrames([ReadingsFile(path, office.sensor_ids) for path in days])
    found = list(stretches(files, DAY, before=15, after=12))
    times = [frame.time for part in found for frame in part.frames]
    assert len(times) == 24
    assert times == sorted(times)
    assert [len(part.before) for part in found] == [0, 6, 12, 15]
    assert [len(part.after) for part in found] == [12, 12, 6, 0]
    assert len({part.digest for part in found}) == 4
    for part in found:
        assert {frame.time // DAY for frame in part.frames} == {part.number}
        around = [frame.time for frame in (*part.before, *part.frames, *part.after)]
        assert around == times[times.index(around[0]) :][: len(around)]
