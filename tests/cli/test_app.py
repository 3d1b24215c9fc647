"""The commands from outside: exit codes, clean streams, plain messages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cloakwork.cli.app import JOBS, app
from tests.cli.conftest import SITE, Outcome, Run, notes

READINGS = "time,sensor,seq,steps\n" + "".join(f"0,s{k},0,{k}\n" for k in range(1, 7))
SCRIPT = Path(sys.executable).with_name("cloakwork")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    (tmp_path / "readings.csv").write_text(READINGS)
    return path


def script(*arguments: object, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    plain = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"}}
    return subprocess.run(
        [str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=plain | (environment or {}),
    )


def test_a_mistyped_command_is_recognised(run: Run) -> None:
    for given, meant in (("recove", "recover"), ("unveal", "unveil"), ("audit comand", "command")):
        done = run(*given.split())
        assert (done.code, f"Did you mean '{meant}'?" in done.err) == (2, True)


def test_the_installed_script_keeps_its_streams_apart(site: Path) -> None:
    """Nothing but JSON on standard output, no colour codes in pipes and files, notes on standard error."""
    out = site.with_name("found.csv")
    done = script("recover", site, site.with_name("readings.csv"), "--json", "--out", out)
    assert done.returncode == 0
    assert json.loads(done.stdout)["frames"] == 1
    assert "\x1b" not in done.stdout + done.stderr + out.read_text()


def test_a_terminal_that_lacks_a_letter_is_no_failure(site: Path) -> None:
    site.write_text('unit = "°C"\n' + SITE)
    done = script("plan", "--no-simulation", site, "--details", environment={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, notes(done.stderr)) == (0, "")
    assert re.search(r"changes a reading by up to .* \?C", done.stdout)
    assert "\x1b" not in done.stdout, "colour codes in a pipe"


def refused(done: Outcome, says: str) -> None:
    """Exit code 2, one clear line on standard error, nothing on standard output."""
    assert done.code == 2, done
    assert re.search(says, done.err), done.err
    assert done.err.startswith("cloakwork: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert done.out == ""


def test_help_is_grouped_has_at_most_ten_options_before_the_rare_ones_and_shows_no_types() -> None:
    group: Any = typer.main.get_command(app)
    assert re.findall(r"^(\w+):$", group.get_help(typer.Context(group)), flags=re.MULTILINE)[1:] == list(JOBS)
    commands = [group.get_command(None, name) for name in group.list_commands(None)]
    commands += [each for command in commands for each in getattr(command, "commands", {}).values()]
    for command in commands:
        told = command.get_help(typer.Context(command))
        usual = re.search(r"\nOptions:\n(.*?)(?:\n\n|$)", told, flags=re.DOTALL)
        assert usual is not None
        assert len(re.findall(r"^  --", usual[1], flags=re.MULTILINE)) <= 11, f"{command.name}: ten and --help"
        assert "<" not in told, command.name


@pytest.mark.parametrize(
    "words",
    [
        *("plan none.toml", "recover site.toml none.csv --alone", "unveil site.toml none.csv"),
        *("plan --json none.toml", "recover --alone none.toml x.csv", "recover --out x.csv site.toml --alone none.csv"),
        *("plan --out=x.json none.toml", "audit readings --epsilon 1 site.toml none.csv"),
        *("series none.csv", "collect site.toml none.toml", "keys list none.json"),
        "audit readings site.toml none.csv --epsilon 1",
        *("recover site.toml site.toml --plan none.json", "unveil site.toml site.toml --keys=none.json --out x.csv"),
        *("recover site.toml --from-store none.db", "export hall --out x.csv --store none.db", "token list"),
        "calibrate site.toml --walk site.toml --readings none.csv",
    ],
)
def test_a_missing_file_is_named(words: str, site: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOAKWORK_STORE", "none.db")
    monkeypatch.chdir(site.parent)
    refused(run(*words.split()), r"^cloakwork: none\.\w+: No such file or directory")


@pytest.mark.parametrize("words", ["--help", "plan --help", "plan none.toml"])
def test_help_and_missing_files_of_plan_load_nothing_heavy(words: str, site: Path) -> None:
    code = (
        "import sys; from cloakwork.cli import main\n"
        f"sys.argv[1:] = {words.split()!r}\n"
        "try: main()\n"
        "finally: print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=site.parent, capture_output=True, text=True, check=False)
    loaded = set(done.stdout.rpartition("loaded ")[2].split())
    assert "typer" in loaded
    assert not {"numpy", "scipy", "numba", "sqlalchemy", "pyarrow", "matplotlib"} & loaded


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", r"site\.toml, line 1: name: this key is missing"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "not a text file in UTF-8"),
        (b"\x00\x01\x02", "not valid TOML"),
        (SITE.replace("alpha = 0.02", "alpha = 0").encode(), r"line 12: privacy\.alpha = 0"),
        (SITE.replace("delta = 1e-3", "delta = 0").encode(), r"line 11: privacy\.delta = 0"),
        (SITE.replace("T = 0.02", "T = nan").encode(), r"line 6: physics\.T = nan"),
        (SITE.replace("T = 0.02", "T =").encode(), "not valid TOML: .*line 6"),
    ],
)
def test_a_bad_site_is_refused(content: bytes, says: str, run: Run, site: Path) -> None:
    site.write_bytes(content)
    done = run("plan", "--no-simulation", site)
    assert done.code == 2
    assert re.search(says, done.err.splitlines()[0])
    assert "Traceback" not in done.err
    if content:
        refused(done, says)


def test_a_folder_is_no_file(run: Run, site: Path, tmp_path: Path) -> None:
    refused(run("plan", tmp_path), "Is a directory")
    refused(run("recover", site, tmp_path), "a folder")
    refused(run("init", tmp_path), "already exists")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, r"readings\.csv: No such file or directory"),
        (b"", "readings.csv is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "the first line is not UTF-8 text"),
        (b"time,sensor,seq,steps\n", "no usable reading in 0 rows"),
        (b"time,sensor,seq,steps\n0,z,0,1\n", "no usable reading in 1 rows; row 2: unknown sensor 'z'"),
    ],
)
def test_bad_readings_are_refused(content: bytes | None, says: str, run: Run, site: Path) -> None:
    readings = site.with_name("readings.csv")
    readings.unlink()
    if content is not None:
        readings.write_bytes(content)
    refused(run("recover", site, readings), says)


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["--source", "kitchen"], "--source kitchen: 'kitchen' is not a position"),
        (["--source", "0.5:heavy"], "--source 0.5:heavy: the weight 'heavy' is not a number"),
        (["--source", "0.5:nan"], "give a finite weight"),
        (["--source", "0.5:inf"], "give a finite weight"),
        (["--source", "0.5:-1"], "give a finite weight"),
        (["--source", "0.5:"], "the weight '' is not a number"),
        (["--source", "nan"], "--source nan: give one number"),
        (["--source", "1.7"], "--source 1.7 is outside"),
        (["--source", "0.1,0.2"], "give one number"),
    ],
)
def test_bad_sources_are_refused(extra: list[str], says: str, run: Run, site: Path) -> None:
    out = site.with_name("out.csv")
    refused(run("simulate", site, "--out", out, *extra), says)
    assert not out.exists()


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [("no/out.csv", 2, "there is no folder .*no"), ("/dev/full", 1, "No space left on device")],
)
def test_an_output_that_cannot_be_written_is_a_failure(target: str, code: int, said: str, run: Run, site: Path) -> None:
    if target == "/dev/full" and not Path(target).exists():
        pytest.skip("this system has no /dev/full")
    out = site.parent / target
    for done in (
        run("simulate", site, "--out", out, "--frames", "50"),
        run("recover", site, site.with_name("readings.csv"), "--out", out),
    ):
        assert done.code == code
        assert re.match(f"cloakwork: .*{said}", done.err)
        assert done.err.count("\n") == 1
