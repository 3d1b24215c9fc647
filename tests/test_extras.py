"""The library works without its optional parts, and says which extra brings one that is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

OPTIONAL = (
    *("amqtt", "cryptography", "dask", "distributed", "fastapi", "matplotlib", "paho", "prometheus_client", "psycopg"),
    *("pyarrow", "pydantic", "pydantic_core", "rich", "sqlalchemy", "starlette", "typer", "uvicorn"),
)
SITES = ("Need", "Site", "Tradeoff", "load_site", "tradeoff")


def run_without(libraries: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({libraries!r}))"
    return subprocess.run([sys.executable, "-c", f"{blocked}\n{code}"], capture_output=True, text=True, check=False)


def test_every_public_name_but_those_of_sites_loads_without_optional_libraries() -> None:
    code = f"import cloakwork as cw\nfor name in set(cw.__all__) - set({SITES}): getattr(cw, name)"
    done = run_without(OPTIONAL, code)
    assert done.returncode == 0, done.stderr
    for name in SITES:
        done = run_without(OPTIONAL, f"import cloakwork as cw\ncw.{name}")
        assert "pip install 'cloakwork[cli]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        (OPTIONAL, [], "cli"),
        (("sqlalchemy", "fastapi"), ["collect", "site.toml"], "collect"),
        (("pyarrow",), ["series", "visits.csv", "--from", "2026-10-05", "--to", "2026-11-02"], "parquet"),
        (("matplotlib",), ["recover", "site.toml", "visits.csv", "--plot", "map.png"], "plot"),
        (("psycopg",), ["token", "list", "--store", "postgresql://someone@localhost/none"], "postgres"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks_in_one_line(
    missing: tuple[str, ...], words: list[str], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "site.toml").touch()
    (tmp_path / "visits.csv").write_text("time\n2026-10-06T08:00:00Z\n")
    start = f"import os; os.chdir({str(tmp_path)!r}); sys.argv[1:] = {words!r}"
    done = run_without(missing, f"{start}; from cloakwork.cli import main; main()")
    assert done.returncode == 1, done.stderr
    said = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]  # a busy machine names its work
    assert (len(said), f"pip install 'cloakwork[{extra}]'" in said[0]) == (1, True), done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "cw.Graph.from_edges('visits.csv', tau=1.0)",
        "from cloakwork.readings import ReadingsFile; list(ReadingsFile('r.parquet', ('a',)))",
        "from cloakwork.readings import TableFile",
        "from cloakwork.series import count_events, Bins; count_events('visits.csv', Bins(0, 60, 60))",
        "from cloakwork.series import write_published",
    ],
)
def test_the_library_names_the_extra_that_it_lacks(code: str, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("source,target\na,b\n")
    (tmp_path / "r.parquet").write_bytes(b"PAR1")
    done = run_without(("pyarrow",), f"import os; os.chdir({str(tmp_path)!r}); import cloakwork as cw\n{code}")
    assert done.stderr.splitlines()[-1].startswith("cloakwork.errors.MissingExtraError: "), done.stderr
    assert "pip install 'cloakwork[parquet]'" in done.stderr


def test_a_cluster_names_its_extra() -> None:
    done = run_without(
        ("dask",),
        "from cloakwork.parallel import WorkPart, part_outcomes\nnext(part_outcomes(abs, [WorkPart('a', -1)], scheduler='tcp://localhost:1'))",
    )
    assert "pip install 'cloakwork[dask]'" in done.stderr.splitlines()[-1]


def test_a_picture_names_its_extra() -> None:
    done = run_without(("matplotlib",), "from cloakwork.series import write_picture")
    assert "pip install 'cloakwork[plot]'" in done.stderr.splitlines()[-1]
