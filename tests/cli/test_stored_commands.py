"""`erase`, `export`, `recover --from-store` and lists of tokens: what an operator does with a store."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloakwork.cli.output import err
from cloakwork.cli.time_arguments import shown
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, RecoveredSource, RecoveredTrack, open_store
from cloakwork.collect.storage.readings import ReadingTable
from cloakwork.errors import StoreAwayError
from cloakwork.readings import READING_COLUMNS, ReadingScale, iso_ms
from cloakwork.sensor.keystream import COUNTER_BITS
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


def test_a_period_can_be_chosen(succeed: Run, case: Case) -> None:
    since, until = moment(case.watched, 5), moment(case.watched, 9)
    named = ("--since", shown(since), "--until", until)
    out = exported(succeed, case, *named)
    assert len(out.read_text().splitlines()) == 1 + 4 * 12
    values = succeed("recover", case.site, "--from-store", case.store, *named, "--json").values
    assert values["frames"] == 4


def test_parquet_has_the_same_rows_with_their_types(succeed: Run, case: Case) -> None:
    out = case.site.with_name("readings.parquet")
    succeed("export", "corridor", "--out", out, "--store", case.store)
    table = pq.read_table(out)
    kinds = {"time": pa.timestamp("ms", "UTC"), "sensor": pa.string(), "seq": pa.int64(), "steps": pa.int64()}
    assert {name: table.schema.field(name).type for name in kinds} == kinds
    columns = (table[name].cast(pa.int64() if name == "time" else kinds[name]).to_pylist() for name in kinds)
    assert list(zip(*columns, strict=True)) == ordered(case.rows)
    about = json.loads(table.schema.metadata[b"cloakwork"])
    assert (about["site"], about["plans"][0]["plan"]) == ("corridor", case.watched.plan.id)
    assert succeed("recover", case.site, out, "--json").values["frames"] == FRAMES


def test_readings_of_another_plan_are_refused_by_its_id(succeed: Run, run: Run, case: Case) -> None:
    plan = case.watched.plan
    with open_store(case.store) as opened:  # the collector starts again with another plan, and readings come in
        later = case.rows[-1].received + 1000
        other = replace(ReadingScale.of(plan, "°C"), plan="0123456789ab")
        opened.plans.begin("corridor", other, later)
        shifts = [(row, row.seq + 10**6, row.time + 10**7) for row in case.rows]
        opened.readings.add([row._replace(seq=seq, time=time, received=later) for row, seq, time in shifts])
    rows = csv.DictReader(exported(succeed, case).read_text().splitlines())
    assert {row["plan"] for row in rows} == {plan.id, "0123456789ab"}
    for source in (["--from-store", case.store], [case.site.with_name("readings.csv")]):
        values = succeed("recover", case.site, *source, "--json").values
        assert values["frames"] == FRAMES
        assert list(values["rows_left_out"].values()) == [len(case.rows)]
    plan_file = case.site.with_name("site.plan.json")
    plan_file.unlink()  # then the noise of the site file is not that of any plan
    for source in (["--from-store", case.store], [case.site.with_name("readings.csv")]):
        refused = run("recover", case.site, *source)
        assert (refused.code, plan.id in refused.err) == (2, True), refused.err


def test_a_device_that_is_still_on_an_earlier_plan_is_known_by_its_generation(succeed: Run, case: Case) -> None:
    """Also when its readings arrive while the collector works with the next plan."""
    plan, old, new = case.watched.plan, 400_000 << COUNTER_BITS, 400_007 << COUNTER_BITS
    began = case.rows[-1].received + 1000
    late = [row._replace(time=row.time + 10**9, received=began + 1) for row in case.rows]
    with open_store(case.store) as opened:
        opened.readings.add([row._replace(seq=row.seq + old, time=row.time + 10**8) for row in case.rows])
        opened.plans.begin("corridor", replace(ReadingScale.of(plan, "°C"), plan="0123456789ab"), began)
        opened.readings.add([row._replace(seq=row.seq + (old if row.sensor == "s01" else new) + 1000) for row in late])
        opened.erase("corridor", until=late[0].time)  # what showed the generation is gone
    rows = list(csv.DictReader(exported(succeed, case).read_text().splitlines()))
    assert len(rows) == len(late)
    assert {(row["sensor"] == "s01", row["plan"]) for row in rows} == {(True, plan.id), (False, "0123456789ab")}
    for source in (["--from-store", case.store], [case.site.with_name("readings.csv")]):
        left_out = succeed("recover", case.site, *source, "--json").values["rows_left_out"]
        assert list(left_out.values()) == [sum(row.sensor != "s01" for row in late)]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_results_are_exported_with_a_row_for_each_source(succeed: Run, case: Case, form: str) -> None:
    out = case.site.with_name(f"results.{form}")
    succeed("export", "corridor", "--results", "--out", out, "--store", case.store)
    rows: list[dict[str, Any]]
    if form == "csv":
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        table = pq.read_table(out)
        assert {name: str(table.schema.field(name).type) for name in ("time", "place", "x", "weight", "solved")} == {
            "time": "timestamp[ms, tz=UTC]",
            "place": "string",
            "x": "double",
            "weight": "double",
            "solved": "timestamp[ms, tz=UTC]",
        }
        rows = [{**row, "time": row["time"].isoformat()} for row in table.to_pylist()]
    with open_store(case.store) as store:
        results = store.results.page("corridor").items
    wanted = [(result.time, spot) for result in results for spot in result.sources or [None]]
    assert [iso_ms(row["time"]) for row in rows] == [time for time, _ in wanted]
    for row, (_, spot) in zip(rows, wanted, strict=True):
        if spot is not None:
            assert (float(row["x"]), float(row["weight"])) == pytest.approx((spot.at[0], spot.weight))
    assert rows[0]["sensors"] in (11, "11")


def test_an_export_has_the_label_of_each_track_and_whether_a_result_is_settled(succeed: Run, case: Case) -> None:
    out = case.site.with_name("results.csv")
    track = RecoveredTrack(7, 0, "3", (0.3,), 1.0, 0.1, 0.9, 0.8)
    with open_store(case.store) as store:
        first = store.results.page("corridor").items[0]
        spot = RecoveredSource("3", (0.3,), 1.0, 0.1, 0.9, label=7)
        changed = replace(first, settled=True, labels=7, sources=(spot,), tracks=(track,))
        assert len(store.results.save([changed])) == 1
    succeed("export", "corridor", "--results", "--out", out, "--store", case.store)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [rows[0][name] for name in ("settled", "label", "same")] == ["1", "7", "0.8"]
    assert (rows[-1]["settled"], rows[-1]["label"]) == ("0", "")


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
        (("corridor", "--out", "x.xlsx"), r"ends in .csv, .jsonl, .parquet, .arrow"),
        (("corridor", "--out", "x.csv", "--since", "yesterday"), "--since yesterday: give a date such as"),
        (("corridor", "--out", "x.csv", "--since", "12-13-14"), "--since 12-13-14: give a date such as"),
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


def test_recover_from_a_store_refuses_what_it_cannot_do(run: Run, case: Case) -> None:
    both = run("recover", case.site, case.site, "--from-store", case.store)
    assert (both.code, "--from-store, not both" in both.err) == (2, True)
    neither = run("recover", case.site)
    assert (neither.code, "give a file of readings, or --from-store" in neither.err) == (2, True)
    alone = run("recover", case.site, case.site, "--since", "2020-01-01")
    assert (alone.code, "need --from-store" in alone.err) == (2, True)
    empty = run("recover", case.site, "--from-store", case.store, "--until", 5)
    assert (empty.code, "has no reading of corridor in this period" in empty.err) == (2, True)


def test_a_mistyped_store_is_refused_and_not_made(run: Run, case: Case, tmp_path: Path) -> None:
    wrong = tmp_path / "stroe.db"
    for words in (
        ("export", "corridor", "--out", tmp_path / "x.csv", "--store", wrong),
        ("erase", "corridor", "--yes", "--store", wrong),
        ("token", "list", "--store", wrong),
        ("token", "revoke", "abc", "--store", wrong),
        ("recover", case.site, "--from-store", wrong),
    ):
        done = run(*words)
        assert done.code == 2
        assert f"{wrong}: No such file or directory. Name the store" in done.err
    assert not wrong.exists()


def rows_left(case: Case) -> int:
    with open_store(case.store) as store:
        return sum(1 for _ in store.readings.iterate("corridor"))


def test_erase_asks_and_does_nothing_without_a_terminal(run: Run, case: Case) -> None:
    done = run("erase", "corridor", "--store", case.store)
    assert done.code == 2
    assert "this erases everything stored of corridor, for ever. If that is meant, say --yes" in done.err
    assert rows_left(case) == len(case.rows)


@pytest.mark.parametrize(("answer", "left"), [("yes", 0), ("Yes ", 0), ("y", None), ("", None), ("no", None)])
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
    turned = run("erase", "corridor", "--since", 9, "--until", 5, "--yes", "--store", case.store)
    assert (turned.code, "the period ends before it begins" in turned.err) == (2, True)
    assert rows_left(case) == len(case.rows)


def test_a_token_for_a_site_that_the_store_has_nothing_of_is_made_with_a_word(succeed: Run, case: Case) -> None:
    new = ("token", "new", "--role", "analyst", "--store", case.store, "--site")
    wrong = succeed(*new, "coridor")
    assert wrong.out.startswith("cw_")
    assert "no data of coridor yet, only of corridor" in " ".join(wrong.err.split())
    assert "nothing of" not in succeed(*new, "corridor").err
