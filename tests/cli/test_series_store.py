"""`series --from-store`: how many are in a zone over time, from what a collector has recovered."""

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, Result, open_store
from cloakwork.readings import FrameRecoverer, ReadingScale
from cloakwork.series import Bins, CountedSeries, mean_levels
from cloakwork.series.bounded_series import BoundedSeries
from cloakwork.series.visits import SAMPLED, visit_slack
from cloakwork.site import plan_beside
from tests.cli.conftest import Run
from tests.cli.series_files import CLEAR, close, read
from tests.collect import small_sites
from tests.collect.small_sites import LINE, make, moment, readings

MINUTE = 60_000
START = 1_791_158_400_000  # 2026-10-05, midnight
PERIOD = ("--from", "2026-10-05", "--to", "2026-10-06")
ROOMS = small_sites.FLAT.format(epsilon=8.0)


@dataclass(frozen=True)
class Case:
    """A site and a store with results of it."""

    site: Path
    store: str

    @property
    def words(self) -> tuple[str, ...]:
        return ("series", str(self.site), "--from-store", self.store, "--filter", "window:1")


def stored(folder: Path, results: list[Result], text: str = ROOMS) -> Case:
    """Keep results, with readings of every sensor for each of them."""
    site, store = folder / "site.toml", str(folder / "store.db")
    site.write_text(text)
    with open_store(store) as opened:
        opened.readings.add(
            [
                Reading(result.site, f"s{sensor}", number, result.time, 0, result.time)
                for number, result in enumerate(results)
                for sensor in range(1, 13)
            ]
        )
        assert len(opened.results.save(results)) == len(results)
    return Case(site, store)


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A day of looks every ten minutes: someone is in the first room in the morning; at night the collector is off."""
    monkeypatch.chdir(tmp_path)
    one = small_sites.flat_site()
    times = [START + 10 * MINUTE * number for number in range(24, 144)]
    noon = START + 12 * 60 * MINUTE
    return stored(
        tmp_path, [small_sites.flat_result(one, time, zone=0 if time < noon else None, chance=0.75) for time in times]
    )


def test_a_zone_is_published_as_its_mean_expected_number(succeed: Run, case: Case) -> None:
    told = succeed(*case.words, *PERIOD, *CLEAR, "--zone", "room-1", "--zone", "room-2")
    found = read(Path("published.csv"))
    assert close(found, "room-1.window-1", np.r_[np.zeros(4), np.full(8, 0.75), np.zeros(12)])
    assert close(found, "room-2.window-1", np.zeros(24))
    assert "4 of the bins without a value" in told.err
    assert "shorter than 1h" in told.out


def test_one_visit_counts_with_a_slot_and_lateness_for_each_zone(succeed: Run, case: Case) -> None:
    """Six looks an hour: a visit of nearly an hour may begin at the end of one look's slot and show in seven."""
    one = succeed(*case.words, *PERIOD, "--zone", "room-1", "--json").values
    assert (one["level"], one["contribution"], one["series"]) == ("visit", pytest.approx(7 / 6, abs=1e-8), ["room-1"])
    two = succeed(*case.words, *PERIOD, "--zone", "all", "--json").values
    assert (two["contribution"], two["series"]) == (pytest.approx(14 / 6, abs=1e-8), ["room-1", "room-2"])
    long = succeed(*case.words, *PERIOD, "--zone", "room-1", "--visit", "90m", "--json").values
    assert long["contribution"] == pytest.approx(10 / 6, abs=1e-8)
    noise = [each["filters"][0]["root_mean_square_error"] for each in (one, two, long)]
    assert noise[1] / noise[0] == pytest.approx(2.0, rel=0.01)
    assert noise[2] / noise[0] == pytest.approx(10 / 7, rel=0.01)
    assert noise[0] == pytest.approx(4.2247 * 7 / 6, rel=0.01)


@pytest.mark.parametrize("clocks", [(0.0, 0.0), (-0.5, 0.5), (0.5, -0.5)])
@pytest.mark.parametrize("slots", [0.9, 1, 2, 6, 7.3])
def test_no_visit_shows_in_more_frames_than_are_counted(slots: float, clocks: tuple[float, float]) -> None:
    """Whenever it begins, whatever the clocks of the sensors are, and however late they read."""
    site = small_sites.flat_site().site
    period, late = site.schedule.period_ms, site.schedule.late_ms
    visit, count = round(slots * period), 6
    bins = Bins(0, count * period, 5)
    stamps = np.arange(0, bins.end, period)
    counted = mean_levels(stamps, np.zeros(len(stamps)), bins, visit=visit + visit_slack(site)).contribution
    read = [stamps + round(clock * period) + delay for clock in clocks for delay in (0, late)]
    for begins in range(10 * period, 12 * period, 7):
        seen = np.any([(begins <= when) & (when < begins + visit) for when in read], axis=0)
        assert seen.sum() / count <= counted + 1e-9


@pytest.mark.parametrize("words", [("--zone", "room-1"), ("--count", "sources")])
def test_a_frame_that_could_not_be_recovered_is_a_look_at_nobody(
    succeed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Else the number of looks, and with it the contribution, would depend on the readings."""
    monkeypatch.chdir(tmp_path)
    one = small_sites.flat_site()
    found = [small_sites.flat_result(one, START + 10 * MINUTE * number, zone=0, chance=0.8) for number in range(144)]
    alone = replace(found[0], time=START + 1, sensors=1, status="failed: few sensors share that time", map=None)
    broken = [
        alone,
        *(replace(row, status="failed: x", map=None, counts=None, sources=()) for row in found[:3]),
        *found[3:],
    ]
    told = []
    for folder, results in (("all", found), ("some", broken)):
        (tmp_path / folder).mkdir()
        told.append(succeed(*stored(tmp_path / folder, results).words, *PERIOD, *CLEAR, *words, "--json"))
        first = 0.8 if folder == "all" else 0.4
        assert close(read(Path("published.csv")), f"{words[1]}.window-1", np.r_[first, np.full(23, 0.8)])
    assert told[0].values["contribution"] == told[1].values["contribution"]
    assert told[0].values["hides"] == told[1].values["hides"]
    assert "3 of 144 results counted as 0" in told[1].err


def test_more_than_counts_is_cut_off_and_said_at_the_terminal(succeed: Run, case: Case) -> None:
    told = succeed(*case.words, *PERIOD, *CLEAR, "--zone", "room-1", "--most-at-once", 0.5)
    assert close(read(Path("published.csv")), "room-1.window-1", np.r_[np.zeros(4), np.full(8, 0.5), np.zeros(12)])
    assert "48 of 120 results clipped" in told.err


def test_sources_can_be_counted_instead(succeed: Run, case: Case) -> None:
    told = succeed(*case.words, *PERIOD, *CLEAR, "--count", "sources")
    found = read(Path("published.csv"))
    assert close(found, "sources.window-1", np.r_[np.zeros(4), np.full(8, 0.75), np.zeros(12)])
    assert "at most 3 counts" in told.out  # max_count of the site


def test_real_results_of_a_real_solver_are_published(
    succeed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = LINE + '[[zone]]\nid = "entry"\nbetween = [0.0, 0.5]\n'
    watched: CollectedSite = make(tmp_path, text)
    store = str(tmp_path / "store.db")
    with open_store(store) as opened:
        opened.readings.add([row for number in range(60) for row in readings(watched, number)])
        times = [moment(watched, number) for number in range(60)]
        frames = opened.frames.values(watched.name, times)
        results = Solver(watched).solve([watched.frame(time, frames[time]) for time in times])
        opened.results.save(results)
    first = times[0] // MINUTE * MINUTE
    period = ("--from", first, "--to", first + (times[-1] // MINUTE * MINUTE - first) + MINUTE)
    succeed(*Case(tmp_path / "site.toml", store).words, "--zone", "entry", "--every", "1m", *period, *CLEAR)
    levels = [(result.zones or ())[0].expected for result in results]
    bins = (np.array(times) - times[0] // MINUTE * MINUTE) // MINUTE
    means = np.bincount(bins, np.clip(levels, 0, 1)) / np.bincount(bins)
    assert means.max() > 0.5
    assert close(read(Path("published.csv")), "entry.window-1", means)


def interrupting(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Interrupt the recovery of the frame after so many."""
    whole, calls = FrameRecoverer.recover, itertools.count()

    def recover(recoverer: FrameRecoverer, *words: Any, **options: Any) -> Any:
        if next(calls) == after:
            raise KeyboardInterrupt
        return whole(recoverer, *words, **options)

    monkeypatch.setattr(FrameRecoverer, "recover", recover)


def test_a_followed_frame_counts_by_its_own_readings_made_under_this_plan(
    succeed: Run, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A visit shows in the followed results around it, where the claim would not cover it."""
    monkeypatch.chdir(tmp_path)
    one = small_sites.flat_site()
    times = [START + 10 * MINUTE * number for number in range(3)]
    values = [small_sites.values(one, (1.25, 1.25), seed=number) for number in range(3)]
    alone = [Solver(one).solve([one.frame(when, told)])[0] for when, told in zip(times, values, strict=True)]
    elsewhere = [replace(small_sites.flat_result(one, when, zone=1), labels=1) for when in times]
    case = Case(tmp_path / "site.toml", str(tmp_path / "store.db"))
    case.site.write_text(ROOMS)
    one.plan.write(plan_beside(case.site))
    with open_store(case.store) as store:
        for number, (when, told) in enumerate(zip(times, values, strict=True)):
            store.readings.add([Reading("flat", name, number, when, value, when) for name, value in told.items()])
        assert len(store.results.save(elsewhere)) == 3
    succeed(*case.words, *PERIOD, *CLEAR, "--zone", "room-1", "--zone", "room-2")
    for row, zone in enumerate(("room-1", "room-2")):
        level = np.mean([min(1.0, (result.zones or ())[row].expected) for result in alone])
        assert close(read(Path("published.csv")), f"{zone}.window-1", np.r_[level, np.zeros(23)])
    kept = tmp_path / "kept.jsonl"
    words = (*case.words, *PERIOD, *CLEAR, "--zone", "room-1", "--zone", "room-2", "--kept", kept)
    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        assert f"The counts so far are in {kept}: run the same command again" in run(*words).err
    kept.write_text(kept.read_text() + '{"frame": "torn')
    with monkeypatch.context() as patch:
        interrupting(patch, after=1)  # the third frame is the only one that is left
        succeed(*words)
    assert close(read(Path("published.csv")), "room-2.window-1", np.r_[level, np.zeros(23)])
    assert kept.read_text().count("\n") == 3
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text("mine\n")
    assert "not a file of counts" in run(*words).err
    with open_store(case.store) as store:
        store.plans.begin("flat", ReadingScale("0123456789ab", "", {}, {}), 0)
    refused = run(*case.words, *PERIOD, *CLEAR, "--zone", "room-1")
    assert (refused.code, "received under plan 0123456789ab" in refused.err) == (2, True)


def test_nothing_that_is_said_depends_on_whether_a_result_was_sampled(
    succeed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only frames in which somebody was found say that they were sampled."""
    monkeypatch.chdir(tmp_path)
    one, said = small_sites.flat_site(), []
    for number, zone in enumerate((None, 0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        status = "nobody" if zone is None else "sampled"
        made = stored(folder, [replace(small_sites.flat_result(one, START, zone=zone), status=status)])
        words = (*made.words, *PERIOD, "--zone", "room-1", "--plot", "a.svg")
        with mpl.rc_context({"svg.fonttype": "none"}):
            told, values = succeed(*words).out, succeed(*words, "--json").values
        assert SAMPLED in told
        assert SAMPLED in values["hides"]
        assert "sampled" in Path("a.svg").read_text()
        said.append((told.splitlines()[:2], values["hides"], values["explanation"]["hidden"]))
    assert said[0] == said[1]


def test_a_site_that_never_samples_says_nothing_of_it(
    succeed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    many = ROOMS.replace("max_count = 3", "max_count = 30\nalike = true")  # too many of unknown strength
    made = stored(tmp_path, [small_sites.flat_result(small_sites.flat_site(), START, zone=0)], many)
    assert "sampled" not in succeed(*made.words, *PERIOD, "--zone", "room-1").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--zone", "attic"), "--zone attic"),
        ((), "--zone, --count: "),
        (("--count", "people"), "--count"),
        (("--count", "sources", "--zone", "all"), "--count"),
        (("--zone", "all", "--from", "2026-11-01", "--to", "2026-11-02"), "--from, --to"),
        (("--zone", "all", "--visit", "soon"), "--visit soon"),
        (("--zone", "all", "--counts", "n"), "--counts: this does not go with --from-store"),
        (("--zone", "all", "--person", "n"), "--person: "),
        (("--zone", "all", "--most-at-once", "0"), "--most-at-once 0"),
        (("--zone", "all", "--every", "1s", "--from", "2025-01-01", "--to", "2026-01-01"), "16,777,216"),
        (("--zone", "all", "--from", "2026-10-05"), "--from, --to"),
        (("--zone", "all", "--to", "2026-10-05"), "--from, --to"),
    ],
)
def test_what_cannot_be_published_is_refused(run: Run, case: Case, words: tuple[str, ...], said: str) -> None:
    before = set(Path().iterdir())
    stated = "--from" in words or "--to" in words
    done = run(*case.words, *(() if stated else PERIOD), *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert set(Path().iterdir()) == before


def test_another_site_or_store_is_refused(run: Run, case: Case, tmp_path: Path) -> None:
    case.site.write_text(ROOMS.replace('"flat"', '"barn"'))
    done = run(*case.words, *PERIOD, "--zone", "all")
    assert (done.code, "no result of barn; it holds: flat" in done.err) == (2, True)
    done = run(*replace(case, store=str(tmp_path / "none.db")).words, *PERIOD, "--zone", "all")
    assert done.code != 0
    assert not (tmp_path / "none.db").exists()


def test_results_of_other_places_count_as_zeros(succeed: Run, case: Case) -> None:
    """A refusal would depend on whether the results of one visit fit."""
    case.site.write_text(ROOMS.replace("cell = 0.5", "cell = 0.25"))
    assert "120 of 120 results counted as 0" in succeed(*case.words, *PERIOD, "--zone", "all").err


def test_a_site_without_zones_says_what_to_do(run: Run, tmp_path: Path) -> None:
    site = make(tmp_path).name
    with open_store(str(tmp_path / "x.db")):
        words = ("--from-store", tmp_path / "x.db", "--filter", "window:1", "--zone", "all")
    done = run("series", tmp_path / "site.toml", *PERIOD, *words)
    assert done.code == 2
    assert f"{site} has no zones" in done.err
    assert "--count" in done.err


def test_the_fullest_room_is_named_and_a_small_epsilon_hides_it(succeed: Run, run: Run, case: Case) -> None:
    words = ("series", str(case.site), "--from-store", case.store, *PERIOD, "--zone", "all", "--fullest")
    told = succeed(*words, "--epsilon", 400, "--json").values
    assert (told["fullest"], told["delta"]) == ("room-1", 0.0)
    assert not Path("published.csv").exists()
    series = BoundedSeries(np.array([[5.0, 0.0], [0.0, 1.0]]), 1.0)
    counted = CountedSeries(series=series, title="hall", hides="", level="event", names=("a", "b"))
    assert {counted.fullest(400.0) for _ in range(9)} == {"a"}
    assert {counted.fullest(0.001) for _ in range(99)} == {"a", "b"}
    for wrong in (("--filter", "window:1"), ("--out", "a.csv"), ("--delta", 1e-3)):
        assert run(*words, *wrong).code == 2
    assert run("series", str(case.site), "--from-store", case.store, *PERIOD, "--zone", "all").code == 2
    assert run(*words[:-2], "room-1", "--fullest").code == 2, "one room leaves no choice"
