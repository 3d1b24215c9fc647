"""Throughput of a collector: readings per second into each store with live recovery, and the delay to the page."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from benchmarks.building import SIZES, office_file
from cloakwork.collect import Role, Store, open_store
from cloakwork.physics import sources
from cloakwork.privacy import Cloak
from cloakwork.site import Site, freeze, load_site, plan_beside
from tests.broker import running_broker
from tests.postgres import running_postgres

SECONDS = 60
OFFICE_MS, OFFICE_S = 10_000, 120  # between frames, and in all
SENSORS = 60
LOADS = {2000: 30, 1000: 60}  # readings a second, with a frame of all sensors every so many milliseconds
VISIBLE_S = 1.0
GROWTH = 1.10
CATCH_UP_S = 15
SETTLED_S = 20  # the memory is compared from then on
GROUP = 3  # collectors that share the readings
GROUP_LOAD = (100, 20, 40)  # sensors, milliseconds between frames (5,000 readings a second), seconds
GROUP_LAG_S = 30  # for the share of the one that was away
NEW = 'cloakwork_readings_total{verdict="new"}'
DEAD_S = (10, 10)  # when one of them is killed, and for how long it is away
SITE = """
name = "hall"
sensors = {sensors}
baseline = 21.0
[physics]
kind = "floorplan"
cell = 0.25
size = [12.5, 10.0]
walls = [[[6.0, 0.0], [6.0, 10.0]], [[6.0, 5.0], [12.5, 5.0]]]
doors = [[[6.0, 2.0], [6.0, 3.25]], [[6.0, 7.0], [6.0, 8.25]]]
regime = "steady"
reach = 1.0
footprint = 0.5
[sources]
kind = "lasting"
strength = 5.0
max_count = 3
[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 0.2
window = "20ms"
period = "{period}ms"
"""


@dataclass
class Seen:
    """The results that a client of the event stream receives, and the collector's memory meanwhile."""

    results: list[tuple[int, float]] = field(default_factory=list)  # time of the frame, when it was seen
    memory: list[tuple[float, int]] = field(default_factory=list)  # when, kilobytes

    def delays(self, begin: int, frames: int, period: int) -> np.ndarray:
        """Seconds from a frame's moment until it, or a newer one, is seen; infinite if never."""
        found = np.full(frames, np.inf)
        for when, seen in self.results:
            number = (when - begin) // period
            if 0 <= number < frames:
                found[number] = min(found[number], seen)
        soonest = np.minimum.accumulate(found[::-1])[::-1]  # a newer frame shows what an older one would
        return np.asarray(soonest - (begin + period * np.arange(frames)) / 1000)


@dataclass(frozen=True)
class Carried:
    """One run."""

    sent: int
    stored: int
    lag_s: float
    p50: float
    p99: float
    solved: int
    frames: int
    afterwards: float
    start_mb: float
    end_mb: float


def run() -> tuple[Table, bool]:
    """Both loads on both stores, a minute each."""
    table = Table(
        title=f"Collector: {SENSORS} sensors of a floor plan with 2,000 places, {SECONDS} s, all on one machine"
    )
    for name in ("store", "readings/s", "sent", "stored", "stored after", "seen p50", "seen p99", "frames solved"):
        table.add_column(name, justify="right")
    for name in ("of", "then frames/s", "memory", "at the end"):
        table.add_column(name, justify="right")
    good = True
    with tempfile.TemporaryDirectory() as folder, running_postgres() as postgres:
        for store in ("SQLite", "PostgreSQL"):
            for rate, period in LOADS.items():
                place = Path(folder) / f"{store}-{rate}"
                place.mkdir()
                url = str(place / "store.db") if store == "SQLite" else postgres.emptied()
                frames = _planned(place / "site.toml", SENSORS, period)
                one = measure(place, url, frames, period)
                shutil.rmtree(place)
                good &= one.stored == one.sent and one.end_mb < GROWTH * one.start_mb and one.lag_s < 5
                good &= rate > 1000 or one.p99 < VISIBLE_S
                table.add_row(store, f"{rate:,}", *_shown(one))
    return table, good


def _shown(one: Carried) -> list[str]:
    return [
        f"{one.sent:,}",
        f"{one.stored:,}",
        f"{one.lag_s:.1f} s",
        f"{1000 * one.p50:.0f} ms",
        f"{1000 * one.p99:.0f} ms",
        f"{one.solved:,}",
        f"{one.frames:,}",
        f"{one.afterwards:.1f}",
        f"{one.start_mb:.0f} MB",
        f"{one.end_mb:.0f} MB",
    ]


def run_building() -> tuple[Table, bool]:
    """An office floor of 5,000 square metres: every reading is stored, and each frame on the page before the next."""
    table = Table(title=f"Collector: 4,000 sensors of an office floor every 10 s, {OFFICE_S} s, PostgreSQL")
    names = ("sent", "stored", "stored after", "seen p50", "seen p99", "frames solved", "of", "memory", "at the end")
    for name in names:
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory() as folder, running_postgres() as postgres:
        path = Path(folder) / "site.toml"
        path.write_text(office_file(*SIZES[5_000]), encoding="utf-8")
        frames = _frozen(path, _seated)
        one = measure(Path(folder), postgres.emptied(), frames, OFFICE_MS, OFFICE_S)
    shown = _shown(one)
    table.add_row(*shown[:7], *shown[8:])
    return table, one.stored == one.sent and one.p99 < 10 and one.end_mb < GROWTH * one.start_mb


def measure(folder: Path, url: str, frames: Path, period: int, seconds: int = SECONDS) -> Carried:
    """A load on a collector that was started for it."""
    path = folder / "site.toml"
    with open_store(url) as store, ExitStack() as stack:
        token = store.tokens.create(Role.OPERATOR).secret
        broker = stack.enter_context(running_broker(folder / "broker", quiet=True))
        collector, address = stack.enter_context(running_collector(path, url, broker.port, folder))
        await_ready(address, token)
        seen = Seen()
        watching = threading.Thread(target=_watch, args=(address, token, seen), daemon=True)
        watching.start()
        weighing = threading.Thread(target=_weigh, args=(collector.pid, seen), daemon=True)
        weighing.start()
        time.sleep(1)
        command = [sys.executable, "-m", "benchmarks.load", broker.port, frames, "hall", period, seconds]
        load = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
        report = json.loads(load.stdout)
        ended = time.monotonic()
        stored = _await_stored(store, report["acknowledged"])
        lag = time.monotonic() - ended
        _await_seen(seen, report["begin"] + (report["frames"] - 1) * period)
        delays = seen.delays(report["begin"], report["frames"], period)
        left = len(store.frames.waiting("hall", limit=10_000))
        afterwards = _catch_up(store)
        start_mb, end_mb = _memory(seen, report["begin"] / 1000, seconds)
        return Carried(
            sent=report["acknowledged"],
            stored=stored,
            lag_s=lag,
            p50=float(np.quantile(delays, 0.5, method="higher")),
            p99=float(np.quantile(delays, 0.99, method="higher")),
            solved=report["frames"] - left,
            frames=report["frames"],
            afterwards=afterwards,
            start_mb=start_mb,
            end_mb=end_mb,
        )


def run_group() -> tuple[Table, bool]:
    """Several collectors that share the readings on one PostgreSQL store; one is killed, and comes back."""
    sensors, period, seconds = GROUP_LOAD
    rate = sensors * 1000 // period
    table = Table(title=f"{GROUP} collectors, {rate:,} readings/s for {seconds} s, one away for {DEAD_S[1]} s")
    for name in ("sent", "stored", "all stored after", "sender late by", "stored by each"):
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory() as name, running_postgres() as postgres, ExitStack() as stack:
        folder, url = Path(name), postgres.emptied()
        path = folder / "site.toml"
        frames = _planned(path, sensors, period)
        store = stack.enter_context(open_store(url))
        token = store.tokens.create(Role.OPERATOR).secret
        broker = stack.enter_context(running_broker(folder / "broker", quiet=True))

        def join(number: int) -> tuple[subprocess.Popen[bytes], str]:
            words = ("--group", "shared", "--name", f"member-{number}")
            started = stack.enter_context(running_collector(path, url, broker.port, folder, *words))
            await_ready(started[1], token)
            return started

        members = [join(number) for number in range(GROUP)]
        command = [sys.executable, "-m", "benchmarks.load", broker.port, frames, "hall", period, seconds]
        load = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        time.sleep(DEAD_S[0])
        before = _taken(members[-1][1], token)
        members[-1][0].kill()
        time.sleep(DEAD_S[1])
        members[-1] = join(GROUP - 1)
        report = json.loads(load.communicate()[0])
        ended = time.monotonic()
        stored = _await_stored(store, report["acknowledged"])
        lag = time.monotonic() - ended
        shares = [_taken(address, token) for _, address in members]
    shares[-1] += before  # and what it stored in the moment before it died
    table.add_row(
        f"{report['acknowledged']:,}",
        f"{stored:,}",
        f"{lag:.1f} s",
        f"{report['late_s']:.1f} s",
        ", ".join(f"{share:,}" for share in shares),
    )
    expected = rate * seconds
    return table, stored == report["acknowledged"] == expected and lag < GROUP_LAG_S and report["late_s"] < 1


def _taken(address: str, token: str) -> int:
    """Readings that a collector was the first to store."""
    lines = [line.decode() for line in asked(address, token, "/metrics")]
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(NEW))


def _planned(path: Path, sensors: int, period: int) -> Path:
    """Write a site with its plan, and frames for the load."""
    path.write_text(SITE.format(sensors=sensors, period=period), encoding="utf-8")
    return _frozen(path, _walk)


def _frozen(path: Path, walk: Callable[[Site, Cloak], np.ndarray]) -> Path:
    site = load_site(path)
    cloak = site.cloak()
    freeze(site, cloak).write(plan_beside(path))
    frames = path.with_name("frames.npz")
    np.savez(frames, steps=walk(site, cloak), names=np.array(site.sensor_ids))
    return frames


def _seated(site: Site, cloak: Cloak) -> np.ndarray:
    """Noisy frames of a person per 17 square metres, who sit."""
    rng, places = np.random.default_rng(1), site.physics.places
    people = np.bincount(rng.choice(places, places // 68, replace=False), minlength=places)
    clean = np.tile(site.physics.apply(people.astype(float)) + site.baselines, (20, 1))
    return np.asarray(cloak.to_steps(cloak.simulate(clean, rng=rng)))


def _walk(site: Site, cloak: Cloak) -> np.ndarray:
    """Noisy frames of two people who walk about, as steps."""
    rng, turn = np.random.default_rng(1), np.linspace(0, 2 * np.pi, 200)
    first = zip(3 + 2 * np.cos(turn), 5 + 4 * np.sin(turn), strict=True)
    second = zip(9 + 2 * np.sin(turn), 7.5 + np.cos(turn), strict=True)
    people = zip(first, second, strict=True)
    clean = np.stack([site.physics.apply(sources(site.physics, list(both))) for both in people])
    return np.asarray(cloak.to_steps(cloak.simulate(clean + site.baselines, rng=rng)))


@contextmanager
def running_collector(
    site: Path, url: str, port: int, folder: Path, *words: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The real program, and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        own = probe.getsockname()[1]
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-c", "from cloakwork.cli import main; main()", "collect", str(site)]
        command += ["--broker", f"mqtt://localhost:{port}", "--listen", f"127.0.0.1:{own}", *words]
        process = subprocess.Popen(command, stderr=log, env=os.environ | {"CLOAKWORK_STORE": url})
    try:
        yield process, f"http://127.0.0.1:{own}"
    finally:
        process.terminate()
        process.wait(60)


def asked(address: str, token: str, path: str, timeout: float = 30) -> Iterator[bytes]:
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        yield from answer


def await_ready(address: str, token: str) -> None:
    """Wait until a collector takes readings and has compiled its solvers."""
    end = time.monotonic() + 600  # a large floor takes a while
    while time.monotonic() < end:
        try:
            report = json.loads(b"".join(asked(address, token, "/v1/sites/hall/health")))
        except OSError:
            report = {"broker": {"state": "away"}, "lag": {"preparing": True}}
        if report["broker"]["state"] == "ok" and not report["lag"]["preparing"]:
            return
        time.sleep(0.2)
    raise RuntimeError("the collector did not start")


def _watch(address: str, token: str, seen: Seen) -> None:
    """Record when each result arrives on the event stream."""
    try:
        for line in asked(address, token, "/v1/events?site=hall", timeout=120):
            if line.startswith(b"data:") and b'"sources"' in line:
                seen.results.append((int(json.loads(line[5:])["time"]), time.time()))
    except OSError:
        return


def _weigh(pid: int, seen: Seen) -> None:
    try:
        while True:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            seen.memory.append((time.time(), int(status.split("VmRSS:")[1].split()[0])))
            time.sleep(1)
    except (OSError, IndexError):
        return


def _memory(seen: Seen, begin: float, seconds: int) -> tuple[float, float]:
    """Megabytes once it has settled, and the most from the last third of the load on."""
    settled = [size for when, size in seen.memory if 0 <= when - begin - SETTLED_S < 10]
    later = [size for when, size in seen.memory if when - begin > 2 * seconds / 3]
    return max(settled) / 1024, max(later) / 1024


def _await_stored(store: Store, expected: int) -> int:
    end = time.monotonic() + 60
    stored = 0
    while stored < expected and time.monotonic() < end:
        time.sleep(0.2)
        stored = sum(frame.readings for frame in store.frames.times("hall", limit=10_000))
    return stored


def _await_seen(seen: Seen, last: int) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end and not any(when == last for when, _ in seen.results):
        time.sleep(0.05)


def _catch_up(store: Store) -> float:
    """Frames a second that are recovered from the backlog, once the load is over."""
    before, begin = len(store.frames.waiting("hall", limit=10_000)), time.monotonic()
    left = before
    while left and time.monotonic() < begin + CATCH_UP_S:
        time.sleep(1)
        left = len(store.frames.waiting("hall", limit=10_000))
    return (before - left) / (time.monotonic() - begin)
