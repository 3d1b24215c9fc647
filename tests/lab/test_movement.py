"""People's movement through the whole chain."""

import json
from pathlib import Path

import numpy as np
import pytest

from cloakwork.lab import Result, find, read_result
from cloakwork.lab.experiments import movement
from cloakwork.lab.experiments.movement import Film, Method, Track, cloak_of, distances, film, flat
from cloakwork.lab.recorded import POSITIONS
from cloakwork.lab.walks import staying

HEADER = "day,seq,frame,n_people,x_px,y_px\n"
PEOPLE = ((2.0, 2.0), (8.0, 6.0))


def written(folder: Path) -> None:
    rows = "".join(f"d,s,{k},2,{5 + k / 10},5\nd,s,{k},2,20,{10 + k / 10}\n" for k in range(60))
    (folder / POSITIONS).parent.mkdir()
    (folder / POSITIONS).write_text(HEADER + rows, encoding="utf-8")


def run_small(seed: int = 1) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(movement, "QUICK_MOMENTS", 3)
        return find("movement").run(quick=True, seed=seed)


@pytest.fixture(scope="module")
def without_data() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLOAKWORK_DATA", raising=False)
        return run_small()


@pytest.fixture(scope="module")
def with_data(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("data")
    written(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOAKWORK_DATA", str(folder))
        return run_small()


def film_of(result: Result) -> Film:
    assert isinstance(result.finding, Film)
    return result.finding


def test_recordings_are_used_where_there_are_any_and_it_says_so(with_data: Result, without_data: Result) -> None:
    real, made_up = film_of(with_data), film_of(without_data)
    assert (real.recorded, made_up.recorded) == (True, False)
    assert "as recorded in an office" in real.words()[0]
    assert "had no recordings" in made_up.words()[0]
    assert "PUTvision/thermo-presence" in made_up.words()[0]
    assert made_up.told == "on made-up walks through the rooms"


def test_what_is_measured_without_data_is_measured_with_data_too(with_data: Result, without_data: Result) -> None:
    few = {one.name: one for one in film_of(without_data).measures()}
    many = {one.name: one for one in film_of(with_data).measures()}
    assert few
    assert set(few) < set(many)
    assert all(one.agrees(many[name]) for name, one in few.items())


def test_the_same_seed_gives_the_same_numbers(
    with_data: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.setenv("CLOAKWORK_DATA", str(tmp_path))
    assert run_small() == with_data


def test_json_round_trip_and_pictures(with_data: Result, without_data: Result, tmp_path: Path) -> None:
    for number, result in enumerate((with_data, without_data)):
        text = json.dumps(result.to_json(), allow_nan=False)
        assert len(text) < 100_000
        assert read_result(text) == result
        result.draw(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 20_000
        for table in result.tables():
            assert all(len(row) == len(table.columns) for row in table.rows)


def test_people_who_stay_are_where_they_are() -> None:
    told: list[tuple[int, int]] = []
    found = film(staying(PEOPLE), quick=False, seed=1, progress=lambda *said: told.append(said), real=False)
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    assert found.people == (2,)
    assert [len(track.distances) for track in found.tracks] == [1, 1, 1]
    assert found.stills[0].people == PEOPLE
    assert found.draws == movement.DRAWS
    assert found.of(Method.OURS).distances[0] < found.guess[0]


def test_the_claim_is_the_same_for_all_and_only_the_noise_differs() -> None:
    claims = {(cloak_of(one).epsilon, cloak_of(one).delta, cloak_of(one).alpha) for one in Method}
    assert len(claims) == 1
    for method in Method:
        assert cloak_of(method).profile.delta(movement.EPSILON) <= movement.DELTA
    assert cloak_of(Method.PAPERS).sigma > 4 * cloak_of(Method.EQUAL).sigma
    assert np.median(cloak_of(Method.OURS).sigmas) < cloak_of(Method.EQUAL).sigma


def test_distance_is_walking_distance_and_an_empty_map_counts_as_the_same_everywhere() -> None:
    truth = np.zeros((3, flat().places))
    here, there = flat().rooms.cell_at(5.75, 0.25), flat().rooms.cell_at(6.25, 0.25)
    truth[:, here] = 1.0
    maps = np.zeros_like(truth)
    maps[0, here] = 2.0
    maps[1, there] = 1.0
    found = distances(truth, maps)
    assert found[0] == pytest.approx(0.0)
    assert found[1] > 2.0  # through the door, and not through the wall
    assert found[2] == pytest.approx(float(distances(truth[:1], np.ones((1, flat().places)))[0]))


def test_goals_are_judged_at_their_thresholds(without_data: Result) -> None:
    found = film_of(without_data)

    def with_means(papers: float, ours: float) -> Film:
        tracks = tuple(
            Track(method, 1.0, 0.0, (mean, mean)) for method, mean in zip(Method, (papers, 2.0, ours), strict=True)
        )
        return Film(
            **{name: getattr(found, name) for name in ("recorded", "told", "seconds", "people", "draws", "limit")},
            tracks=tracks,
            guess=(2.0, 2.0),
            stills=found.stills,
            control=found.control,
        )

    assert [goal.met for goal in with_means(2.6, 1.0).goals()] == [True, True]
    assert [goal.met for goal in with_means(2.4, 1.0).goals()] == [False, True]
    assert [goal.met for goal in with_means(9.0, 1.1).goals()] == [True, False]
    assert "says nothing here" in with_means(2.1, 1.0).words()[1]
    assert "says little here" in with_means(1.9, 1.0).words()[1]
