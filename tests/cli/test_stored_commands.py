"""`erase`, `export`, `recover --from-store` and lists of tokens: what an operator does with a store."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.cli.output import err
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, open_store
from cloakwork.collect.storage.readings import ReadingTable
from cloakwork.errors import StoreAwayError
from cloakwork.readings import READING_COLUMNS, ReadingScale, iso_ms
from tests.cli.conftest import Run
from tests.collect.small_sites import make, moment, readings
from tests.postgres import running_postgres

FRAMES = 30


@dataclass(frozen=True)
class Case:
    """A store with thirty frames of a site, of which the first ten are recovered."""

    watched: CollectedSite
    site: Path
    store: str
    rows: list[Reading]


def filled(folder: Path, store: str) -> Case:
    watched = make(folder)
    rows = [row for number in range(FRAMES) for row in readings(watched, number)]
    del rows[5]  # one sensor is missing in the first frame
    with open_store(store) as opened:
        opened.plans.begin(watched.name, ReadingScale.of(watched.plan, "°C"), rows[0].received)
        opened.readings.add(rows)
        times = [moment(watched, number) for number in range(10)]
        opened.results.save(Solver(watched).solve(watched.frames(opened, times)))
    return Case(watched, folder / "site.toml", store, rows)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return filled(tmp_path, str(tmp_path / "store.db"))


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with running_postgres() as server, server.database() as url:
        yield url


def ordered(rows: list[Reading]) -> list[tuple[int, str, int, int]]:
    return sorted((row.time, row.sensor, row.seq, row.value) for row in rows)


def exported(succeed: Run, case: Case, *words: object) -> Path:
    out = case.site.with_name("readings.csv")
    succeed("export", "corridor", "--out", out, "--store", case.store, *words)
    return out


def check_round_trip(succeed: Run, case: Case) -> None:
    """An export is what was stored, and recovers to the same as the store itself."""
    out = exported(succeed, case)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(READING_COLUMNS)
    found = [(iso_ms(row["time"]), row["sensor"], int(row["seq"]), int(row["steps"])) for row in rows]
    assert found == ordered(case.rows)
    for row in rows:
        sensor = case.watched.plan.sensor(row["sensor"])
        assert float(row["value"]) == pytest.approx(int(row["steps"]) * sensor.step, rel=1e-12)
        assert (float(row["sigma"]), row["plan"], row["unit"]) == (sensor.sigma, case.watched.plan.id, "°C")
    results = [case.site.with_name(name) for name in ("from-file.csv", "from-store.csv")]
    told = [
        succeed("recover", case.site, out, "--out", results[0], "--json").values,
        succeed("recover", case.site, "--from-store", case.store, "--out", results[1], "--json").values,
    ]
    assert results[0].read_text() == results[1].read_text()
    different = {name for name in told[0] if told[0][name] != told[1][name]}
    assert different <= {"out", "readings", "took_s", "seconds", "written"}, different
    assert told[1]["frames"] == FRAMES


def test_an_export_recovers_to_the_same_as_the_store(succeed: Run, case: Case) -> None:
    check_round_trip(succeed, case)


def test_it_does_so_with_postgresql_whose_password_nobody_sees(
    succeed: Run, run: Run, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = filled(tmp_path, postgres_url)
    password = postgres_url.split(":")[2].split("@", maxsplit=1)[0]
    with monkeypatch.context() as environment:
        environment.setenv("PGPASSWORD", password)
        check_round_trip(succeed, replace(case, store=postgres_url.replace(f":{password}@", "@")))
    told = run("export", "corridor", "--out", tmp_path / "x.csv", "--store", postgres_url)
    assert (told.code, "PGPASSWORD" in told.err) == (2, True)
    assert password not in told.err
    monkeypatch.setenv("CLOAKWORK_STORE", postgres_url)
    said = succeed("token", "new", "--role", "analyst").err
    said += succeed("token", "list").said
    said += run("token", "revoke", "nobody").said
    said += succeed("erase", "corridor", "--yes").said
    assert password not in said
    monkeypatch.setenv("CLOAKWORK_STORE", postgres_url.replace(password, "guessed"))
    refused = run("token", "list")
    assert refused.code == 1
    assert "check user, password" in refused.err
    assert "guessed" not in refused.err


def test_results_are_exported_with_a_row_for_each_source(succeed: Run, case: Case) -> None:
    rows = list(csv.DictReader(exported(succeed, case, "--results").read_text().splitlines()))
    with open_store(case.store) as store:
        results = store.results.page("corridor").items
    wanted = [(result.time, spot) for result in results for spot in result.sources or [None]]
    assert [iso_ms(row["time"]) for row in rows] == [time for time, _ in wanted]
    for row, (_, spot) in zip(rows, wanted, strict=True):
        if spot is not None:
            assert (float(row["x"]), float(row["weight"])) == pytest.approx((spot.at[0], spot.weight))
    assert rows[0]["sensors"] == "11"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_that_fails_leaves_no_file_and_one_that_is_there_alone(
    run: Run, case: Case, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ReadingTable.iterate

    def breaks(self: ReadingTable, *given: Any) -> Iterator[Reading]:
        yield next(usual(self, *given))
        raise StoreAwayError("the store went away")

    monkeypatch.setattr(ReadingTable, "iterate", breaks)
    monkeypatch.setattr("cloakwork.cli.export.GROUP", 1)
    new, old = case.site.with_name(f"new.{form}"), case.site.with_name(f"old.{form}")
    old.write_text("precious")
    before = set(case.site.parent.iterdir())
    for out in (new, old):
        done = run("export", "corridor", "--out", out, "--store", case.store)
        assert (done.code, done.err) == (1, "cloakwork: the store went away\n")
    assert set(case.site.parent.iterdir()) == before
    assert old.read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("barn", "--out", "x.csv"), "no reading of barn in this period; it has readings of: corridor"),
        (("corridor", "--out", "x.csv", "--until", "1970-01-02"), "Check the period"),
        (("corridor", "--out", "x.xlsx"), r"ends in .csv, .jsonl, .parquet"),
        (("corridor", "--out", "x.csv", "--since", "yesterday"), "'--since': yesterday: give a date such as"),
        (("corridor", "--out", "x.csv", "--since", "12-13-14"), "'--since': 12-13-14: give a date such as"),
    ],
)
def test_an_export_of_nothing_is_refused(
    run: Run, case: Case, words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("export", *words, "--store", case.store)
    assert done.code == 2
    assert said in done.err
    assert not Path("x.csv").exists()


def rows_left(case: Case) -> int:
    with open_store(case.store) as store:
        return sum(1 for _ in store.readings.iterate("corridor"))


@pytest.mark.parametrize(("answer", "left"), [("Yes ", 0), ("y", None), ("", None)])
def test_erase_takes_only_a_yes(
    run: Run, case: Case, monkeypatch: pytest.MonkeyPatch, answer: str, left: int | None
) -> None:
    asked = []

    def reply(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(type(err), "is_terminal", True)
    monkeypatch.setattr(err, "input", reply)
    done = run("erase", "corridor", "--store", case.store)
    assert asked == ["Erase everything stored of corridor, for ever? Type yes: "]
    assert done.code == (2 if left is None else 0)
    assert rows_left(case) == (len(case.rows) if left is None else left)


def test_erase_removes_a_sensor_or_a_period_and_what_was_made_from_it(succeed: Run, case: Case) -> None:
    done = succeed("erase", "corridor", "--id", "s02", "--yes", "--store", case.store)
    assert done.err.startswith("erased 30 readings, 10 results, 0 reports of corridor\n")
    assert "Backups and exports still have what they had" in done.err
    with open_store(case.store) as store:
        assert {row.sensor for row in store.readings.iterate("corridor")} == {row.sensor for row in case.rows} - {"s02"}
        assert store.results.page("corridor").items == ()
    again = succeed("erase", "corridor", "--id", "s2", "--yes", "--store", case.store)
    assert "nothing was stored of sensor s2" in again.err, "a mistyped name must not look like success"
    until = moment(case.watched, 28)
    succeed("erase", "corridor", "--until", until, "--yes", "--store", case.store)
    assert rows_left(case) == 2 * 11


def test_erase_refuses_a_site_that_is_not_there_and_a_period_that_cannot_be(run: Run, case: Case) -> None:
    done = run("erase", "barn", "--yes", "--store", case.store)
    assert (done.code, "barn: the store has nothing of it. It has: corridor." in done.err) == (2, True)
    unsure = run("erase", "corridor", "--store", case.store)
    assert (unsure.code, "If that is meant, say --yes" in unsure.err) == (2, True)
    turned = run("erase", "corridor", "--since", 9, "--until", 5, "--yes", "--store", case.store)
    assert (turned.code, "the period ends before it begins" in turned.err) == (2, True)
    assert rows_left(case) == len(case.rows)
