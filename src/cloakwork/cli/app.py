"""The commands, and what happens when one fails."""

import os
import sys
from importlib.metadata import version
from importlib.resources import files
from io import TextIOWrapper
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

keys = typer.Typer(
    help="Make and look after the keys that take the noise off again. For the trusted party.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(keys, name="keys")

SiteFile = Annotated[Path, typer.Argument(metavar="SITE", help="The site file.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="The frozen plan; that beside the site file if there is one.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
BrokerUrl = Annotated[str, typer.Option(help="Where it sends: mqtt://host, or mqtts://user@host:8883 with TLS.")]
PasswordFile = Annotated[Path | None, typer.Option(help="File with the device's password at the broker.")]
Authority = Annotated[Path | None, typer.Option(help="Certificate that the broker's is signed with, in PEM form.")]
KeyFile = Annotated[Path, typer.Argument(metavar="KEYS", help="The site's file of keys.")]
KeySensor = Annotated[str, typer.Option("--id", help="Id of the sensor.")]


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
    out: Annotated[Path | None, typer.Option("--out", help="File to write the frozen plan to.")] = None,
    json: Json = False,
) -> None:
    """Say how much noise a site needs, what it hides, and what it costs; freeze that for its devices."""
    if choose is None:
        from cloakwork.cli.plan import run_plan

        run_plan(site, out=out, json=json)
        return
    if out is not None:
        raise InputError("--choose with --out: change the site file first, then write its plan with --out.")
    from cloakwork.cli.choose import run_choose

    run_choose(site, choose, json=json)


@app.command()
def simulate(
    site: SiteFile,
    out: Annotated[Path, typer.Option("--out", help="CSV file of noisy readings to write.")],
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="AT[:WEIGHT]", help="A source: 0.24, 3.5,2 or a node; again for more."),
    ] = None,
    plan: PlanFile = None,
    frames: Annotated[int, typer.Option(min=1, help="How many frames.")] = 1,
    truth: Annotated[Path | None, typer.Option(help="CSV file of the true sources to write as well.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Make the noise reproducible.")] = None,
) -> None:
    """Write the noisy readings that a site would send. For experiments: this noise is not private."""
    from cloakwork.cli.simulate import run_simulate

    run_simulate(site, source or [], plan=plan, frames=frames, out=out, truth=truth, seed=seed)


@app.command()
def recover(
    site: SiteFile,
    readings: Annotated[Path, typer.Argument(help="CSV file of time,sensor,seq,value.")],
    plan: PlanFile = None,
    out: Annotated[Path | None, typer.Option("--out", help="CSV file of recovered sources to write.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the recovered map to write.")] = None,
    json: Json = False,
) -> None:
    """Recover the vicinity of the sources from noisy readings."""
    from cloakwork.cli.recover import run_recover

    run_recover(site, readings, plan=plan, out=out, plot=plot, json=json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the picture.")] = Path("out"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another draw of the noise.")] = 1,
) -> None:
    """Cloak and recover three people in a two-bedroom flat, and draw what everyone sees."""
    from cloakwork.cli.demo import run_demo

    run_demo(out, seed=seed)


@app.command()
def unveil(
    site: SiteFile,
    readings: Annotated[Path, typer.Argument(help="CSV file of time,sensor,seq,value.")],
    keys: Annotated[Path, typer.Option("--keys", help="The site's keys, or an export of one sensor's.")],
    out: Annotated[Path, typer.Option("--out", help="CSV file of true readings to write.")],
    plan: PlanFile = None,
) -> None:
    """Take the noise off readings, with the keys. What it writes is not private."""
    from cloakwork.cli.unveil import run_unveil

    run_unveil(site, readings, keys=keys, out=out, plan=plan)


@app.command()
def provision(
    site: SiteFile,
    sensor: Annotated[str, typer.Option("--id", help="Which sensor of the site.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write; devices/ID beside the site file if left out.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="Keys of the site: their holder can remove the noise.")
    ] = None,
    plan: PlanFile = None,
    broker: BrokerUrl = "mqtt://localhost",
    password_file: PasswordFile = None,
    ca: Authority = None,
    bench: Annotated[bool, typer.Option("--bench", help="For audits: own key and site name, no budget.")] = False,
    json: Json = False,
) -> None:
    """Write everything that one device needs into a folder."""
    from cloakwork.cli.provision import run_provision

    run_provision(
        site,
        sensor,
        out=out,
        keys=keys,
        plan=plan,
        broker=broker,
        password_file=password_file,
        ca=ca,
        bench=bench,
        json=json,
    )


@app.command()
def sensor(
    site: Annotated[Path, typer.Argument(metavar="SITE", help="The site file, or the folder of a device.")],
    source: Annotated[
        str, typer.Option(help="command:PROGRAM, file:PATH, simulated, or simulated:AT with a site file.")
    ],
    sensor: Annotated[str | None, typer.Option("--id", help="Which sensor of the site.")] = None,
    broker: Annotated[str | None, typer.Option(help="Another broker than that of the folder.")] = None,
    password_file: PasswordFile = None,
    ca: Authority = None,
    home_assistant: Annotated[bool, typer.Option("--home-assistant", help="Tell Home Assistant as well.")] = False,
) -> None:
    """Work as a device: measure, cloak and send until stopped."""
    from cloakwork.cli.sensor import run_sensor

    run_sensor(
        site,
        sensor=sensor,
        source=source,
        broker=broker,
        password_file=password_file,
        ca=ca,
        home_assistant=home_assistant,
    )


@keys.command("new")
def keys_new(
    site: SiteFile, out: Annotated[Path, typer.Option("--out", help="File of keys to write.")] = Path("keys.json")
) -> None:
    """Make the keys of a site."""
    from cloakwork.cli.keys import run_new

    run_new(site, out=out)


@keys.command("list")
def keys_list(file: KeyFile, json: Json = False) -> None:
    """Say which devices were provisioned, and how they stand. Never shows a key."""
    from cloakwork.cli.keys import run_list

    run_list(file, json=json)


@keys.command("export")
def keys_export(
    file: KeyFile,
    sensor: KeySensor,
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
) -> None:
    """Write what unveils one sensor, and no other."""
    from cloakwork.cli.keys import run_export

    run_export(file, sensor, out=out)


@keys.command("rotate")
def keys_rotate(file: KeyFile) -> None:
    """Make a new master for every device that is provisioned from now on."""
    from cloakwork.cli.keys import run_rotate

    run_rotate(file)


@keys.command("revoke")
def keys_revoke(file: KeyFile, sensor: KeySensor) -> None:
    """Say that a device is lost or stolen: what it sends from now on is not unveiled."""
    from cloakwork.cli.keys import run_revoke

    run_revoke(file, sensor)


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no sign for a letter shows a question mark
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
