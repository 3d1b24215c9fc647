"""Sources that are followed live, on a real store: labels, settled results, restarts, late frames, two collectors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cloakwork.collect.attack import AttackCache, Span
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, Result, Store, open_store
from cloakwork.readings import ReadingScale
from tests.collect.small_sites import FLAT, LONG, flat_site, give, moment, readings, running, values
from tests.waiting import until

LEFT, RIGHT = (1.25, 1.25), (4.25, 1.25)
SITE = flat_site(FLAT + "speed = 0\n", 30.0)
LAG = 6


def rows(number: int, *at: tuple[float, float], without: Sequence[str] = ()) -> list[Reading]:
    return readings(SITE, number, values(SITE, *at, seed=number), without=without)


def stored(store: Store) -> dict[int, Result]:
    """The results of the store by the number of their frame."""
    first = moment(SITE, 0)
    found = store.results.at(SITE.name, [frame.time for frame in store.frames.times(SITE.name, limit=1000)])
    return {(result.time - first) // SITE.schedule.period_ms: result for result in found}


def run(store: Store, numbers: Sequence[int], *at: tuple[float, float]) -> None:
    """Frames that a collector finds in the store when it starts."""
    for number in numbers:
        store.readings.add(rows(number, *at))
    with running(store, SITE):
        until(lambda: not store.frames.waiting(SITE.name))


def labels(result: Result) -> dict[str, int | None]:
    """The label of the source in each zone."""
    places = {zone.id: set(zone.places.tolist()) for zone in SITE.site.zones}
    return {zone: source.label for source in result.sources for zone in places if int(source.place) in places[zone]}


def test_sources_keep_their_labels_and_results_settle(sqlite_store: Store) -> None:
    with running(sqlite_store, SITE) as (live, told):
        for number in range(LAG + 3):
            give(sqlite_store, live, rows(number, LEFT, RIGHT))
            until(lambda number=number: number in stored(sqlite_store))  # type: ignore[misc]
        until(lambda: sum(result.settled for result in told) == 3)
    found = stored(sqlite_store)
    assert [found[number].settled for number in range(LAG + 3)] == [True] * 3 + [False] * LAG
    assert {tuple(sorted(labels(found[number]).items())) for number in found} == {
        (("room-1", labels(found[0])["room-1"]), ("room-2", labels(found[0])["room-2"]))
    }
    assert all(len(found[number].tracks) == 2 for number in range(2, LAG + 3))
    assert {track.since for track in found[LAG + 2].tracks} == {moment(SITE, 0)}
    assert [zone.occupied for zone in found[LAG + 2].zones or ()] == [True, True]


def test_a_restarted_collector_continues_the_tracks(sqlite_store: Store) -> None:
    run(sqlite_store, range(9), LEFT)
    before = stored(sqlite_store)[8]
    run(sqlite_store, range(9, 13), LEFT, RIGHT)
    found = stored(sqlite_store)
    assert labels(found[12])["room-1"] == labels(before)["room-1"]
    assert labels(found[12])["room-2"] not in {None, *(track.label for track in before.tracks)}
    assert {track.label: track.since for track in found[12].tracks}[before.tracks[0].label] == before.tracks[0].since


def test_readings_of_another_plan_are_neither_followed_nor_attacked_with_the_noise_of_this_one(
    sqlite_store: Store,
) -> None:
    scale = ReadingScale.of(SITE.plan, SITE.site.unit)
    for period, number in enumerate((0, 1, 3)):  # this plan, another, and this one again
        plan = "0123456789ab" if number == 1 else SITE.plan.id
        sqlite_store.plans.begin(SITE.name, replace(scale, plan=plan), 1000 * period)
        sqlite_store.readings.add([row._replace(received=1000 * period + 5) for row in rows(number, LEFT)])
    times = [moment(SITE, number) for number in (0, 1, 3)]
    first, last = SITE.frames(sqlite_store, times)
    for frame, number in ((first, 0), (last, 3)):
        assert frame.time == moment(SITE, number)
        assert frame.steps.tolist() == [row.value for row in rows(number, LEFT)]
    attack = AttackCache(sqlite_store).attack_until(SITE, times[-1], Span.DAY)
    assert attack is not None
    assert attack.frames == 2


def test_a_late_frame_is_worked_in_and_settles_and_one_that_grows_does_too(sqlite_store: Store) -> None:
    with running(sqlite_store, SITE) as (live, _):
        for number in (0, 1, 2, 4):
            give(sqlite_store, live, rows(number, LEFT, without=["s03"] if number == 2 else []))
            until(lambda number=number: number in stored(sqlite_store))  # type: ignore[misc]
        give(sqlite_store, live, rows(3, LEFT))
        give(sqlite_store, live, [row for row in rows(2, LEFT) if row.sensor == "s03"])
        until(lambda: 3 in stored(sqlite_store))
        late = stored(sqlite_store)[3]
        assert live.settle(60.0), "a frame that grew waits for more, and newer ones must not come first"
        for number in range(5, 5 + LAG):
            give(sqlite_store, live, rows(number, LEFT))
        until(lambda: stored(sqlite_store)[4].settled)
    found = stored(sqlite_store)
    assert (late.settled, late.labels, late.tracks) == (False, None, ())
    assert [(found[number].settled, found[number].sensors) for number in (2, 3)] == [(True, 12), (True, 12)]
    assert labels(found[3]) == labels(found[2]) == labels(found[4])


def test_a_frame_that_comes_too_late_is_recovered_alone_and_changes_no_other(sqlite_store: Store) -> None:
    numbers = [number for number in range(20) if number != 5]
    run(sqlite_store, numbers, LEFT)
    before = stored(sqlite_store)
    with running(sqlite_store, SITE) as (live, _):
        give(sqlite_store, live, rows(20, LEFT))
        until(lambda: 20 in stored(sqlite_store))
        give(sqlite_store, live, rows(5, LEFT))
        until(lambda: 5 in stored(sqlite_store))
    found = stored(sqlite_store)
    assert (found[5].labels, found[5].settled) == (None, False)
    assert {number: found[number] for number in range(13) if number != 5} == {
        number: before[number] for number in range(13) if number != 5
    }


def test_of_two_collectors_on_one_store_one_recovers_and_the_other_takes_over(postgres_url: str) -> None:
    """Both see all frames; one begins later. Whoever is at work, results and labels are of one kind."""
    with open_store(postgres_url) as ours, open_store(postgres_url) as theirs:
        run(ours, range(3), LEFT)
        with running(theirs, SITE) as (second, theirs_told):
            with running(ours, SITE) as (first, ours_told):
                for number in range(3, 12):
                    sent = rows(number, *((LEFT, RIGHT) if number > 5 else (LEFT,)))
                    ours.readings.add(sent)
                    for live in (first, second) if number % 3 else (first,):  # some reach one of them only
                        live.on_new(sent)
                    until(lambda number=number: number in stored(ours))  # type: ignore[misc]
                assert first.settle(LONG)
                assert second.settle(LONG)
            assert not ours_told, "the second one was first to start"
            theirs.readings.add(rows(12, LEFT, RIGHT))
            until(lambda: 12 in stored(ours))
        with running(ours, SITE):
            ours.readings.add(rows(13, LEFT, RIGHT))
            until(lambda: 13 in stored(ours))
        found = stored(ours)
        assert {result.time for result in theirs_told} >= {moment(SITE, number) for number in range(3, 13)}
        assert len({labels(found[number])["room-1"] for number in range(1, 14)}) == 1
        assert len({labels(found[number])["room-2"] for number in range(8, 14)}) == 1
        assert [number for number in found if found[number].settled] == list(range(14 - LAG))
        assert all(found[number].labels is not None for number in found)


def test_after_an_erasure_the_tracker_starts_from_what_is_left(sqlite_store: Store) -> None:
    with running(sqlite_store, SITE) as (live, _):
        for number in range(4):
            give(sqlite_store, live, rows(number, LEFT))
            until(lambda number=number: number in stored(sqlite_store))  # type: ignore[misc]
        sqlite_store.erase(SITE.name)
        give(sqlite_store, live, rows(4, RIGHT))
        until(lambda: 4 in stored(sqlite_store))
    assert {track.since for track in stored(sqlite_store)[4].tracks} == {moment(SITE, 4)}


STAY = '[privacy.stay]\nlength = "8h"\nepsilon = 20.0\ndelta = 1e-5\n'


def test_frames_recovered_in_one_batch_have_the_tracks_and_rooms_that_they_have_one_by_one(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """During a batch the store lacks its results: continuing from the last stored one would lose tracks."""

    def followed(store: Store, batches: Sequence[range]) -> dict[int, Result]:
        solver = Solver(SITE, store)
        for batch in batches:
            for number in batch:
                store.readings.add(rows(number, *([LEFT] if number < 4 else [LEFT, RIGHT])))
            times = [moment(SITE, number) for number in batch]
            results = solver.solve(SITE.frames(store, times))
            store.results.save(list({result.time: result for result in results}.values()))
        return stored(store)

    def seen(result: Result) -> object:
        return result.settled, result.labels, result.tracks, result.zones, labels(result)

    with open_store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        singly = followed(other, [range(number, number + 1) for number in range(14)])
        together = followed(sqlite_store, [range(3), range(3, 14)])
    assert {number: seen(result) for number, result in together.items()} == {
        number: seen(result) for number, result in singly.items()
    }
