"""The commands, and what happens when one fails."""

import os
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.output import note, say
from cloakwork.errors import BudgetError, InputError

BAD_INPUT, FAILURE = 2, 1

app = typer.Typer(
    name="cloakwork",
    help="Privacy for physical sensors: hide exactly where a source is, still learn its vicinity.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

lab = typer.Typer(
    help="Repeat the experiments: every number with its seed, as a table, JSON and a picture.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(lab, name="lab")

SiteFile = Annotated[Path, typer.Argument(metavar="SITE", help="The site file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def _version(asked: bool) -> None:
    if asked:
        say(f"cloakwork {version('cloakwork')}")
        raise typer.Exit


@app.callback()
def top(
    show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Privacy for physical sensors: hide exactly where a source is, still learn its vicinity."""


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("site.toml"),
) -> None:
    """Write a commented example of a site file to start from."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already: give another name, or move it away.") from None
    note(f"wrote {path}; next: cloakwork plan {path}")


@app.command()
def plan(
    site: SiteFile,
    choose: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Say instead which N of the sensors to keep.")
    ] = None,
    json: Json = False,
) -> None:
    """Say how much noise a site needs, what it hides, and what it costs."""
    from cloakwork.cli.plan import run_plan

    run_plan(site, choose=choose, json=json)


@app.command()
def simulate(
    site: SiteFile,
    out: Annotated[Path, typer.Option("--out", help="CSV file of noisy readings to write.")],
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="AT[:WEIGHT]", help="A source: 0.24, 3.5,2 or a node; again for more."),
    ] = None,
    frames: Annotated[int, typer.Option(min=1, help="How many frames.")] = 1,
    truth: Annotated[Path | None, typer.Option(help="CSV file of the true sources to write as well.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Make the noise reproducible.")] = None,
) -> None:
    """Write the noisy readings that a site would send. For experiments: this noise is not private."""
    from cloakwork.cli.simulate import run_simulate

    run_simulate(site, source or [], frames=frames, out=out, truth=truth, seed=seed)


@app.command()
def recover(
    site: SiteFile,
    readings: Annotated[Path, typer.Argument(help="CSV file of time,sensor,seq,value.")],
    out: Annotated[Path | None, typer.Option("--out", help="CSV file of recovered sources to write.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the recovered map to write.")] = None,
    json: Json = False,
) -> None:
    """Recover the vicinity of the sources from noisy readings."""
    from cloakwork.cli.recover import run_recover

    run_recover(site, readings, out=out, plot=plot, json=json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the picture.")] = Path("out"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another draw of the noise.")] = 1,
) -> None:
    """Cloak and recover three people in a two-bedroom flat, and draw what everyone sees."""
    from cloakwork.cli.demo import run_demo

    run_demo(out, seed=seed)


@lab.command("list")
def lab_list(json: Json = False) -> None:
    """Say which experiments there are."""
    from cloakwork.cli.lab import run_list

    run_list(json=json)


@lab.command("run")
def lab_run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which experiment; `all` for all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, with rough numbers.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for NAME.json and NAME.png.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other draws.")] = 1,
    json: Json = False,
) -> None:
    """Run one experiment, or all, and print what was found."""
    from cloakwork.cli.lab import run_lab

    run_lab(name, quick=quick, out=out, seed=seed, json=json)


def main() -> None:
    """Run a command; exit with 0, with 2 for bad input, with 1 for a failure, and never with a traceback."""
    try:
        app()
    except (InputError, BudgetError) as problem:
        _stop(str(problem), BAD_INPUT)
    except BrokenPipeError:
        # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as problem:
        name = f"{problem.filename}: " if problem.filename else ""
        _stop(f"{name}{problem.strerror or problem}", FAILURE)
    except MemoryError:
        _stop("not enough memory for a model of this size: use fewer places or sensors", FAILURE)
    except Exception as problem:  # the last resort: a message instead of a traceback
        if os.environ.get("CLOAKWORK_TRACEBACK"):
            raise
        _stop(
            f"internal error: {type(problem).__name__}. This is a fault in Cloakwork; "
            "set CLOAKWORK_TRACEBACK=1 to see where, and report it.",
            FAILURE,
        )


def _stop(message: str, code: int) -> None:
    note(f"cloakwork: {message}")
    sys.exit(code)
