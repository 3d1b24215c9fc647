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
from tests.cli.conftest import SITE, Run, notes

SCRIPT = Path(sys.executable).with_name("cloakwork")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    (tmp_path / "readings.csv").write_text("time,sensor,seq,steps\n" + "".join(f"0,s{k},0,{k}\n" for k in range(1, 7)))
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


def test_a_full_disk_is_a_failure(run: Run, site: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = run("recover", site, site.with_name("readings.csv"), "--out", "/dev/full")
    assert (done.code, done.err) == (1, "cloakwork: No space left on device\n")


def test_a_reader_that_has_seen_enough_is_no_failure(site: Path) -> None:
    """`cloakwork plan ... | true` ends quietly and well, however late the output is written."""
    read, write = os.pipe()
    os.close(read)
    words = [str(SCRIPT), "plan", "--no-simulation", str(site)]
    with subprocess.Popen(words, stdout=write, stderr=subprocess.PIPE, text=True) as process:
        os.close(write)
        said = process.communicate()[1]
    assert (notes(said), process.returncode) == ("", 0)
