"""The commands, and what happens when one fails."""

import os
import sys
from importlib.metadata import version
from importlib.resources import files
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from cloakwork.cli.arguments import (
    DEFAULT_STORE,
    Authority,
    BrokerUrl,
    Json,
    PasswordFile,
    PlanFile,
    Since,
    SiteFile,
    SiteName,
    StoreUrl,
    Until,
    no_password,
)
from cloakwork.cli.groups import audit, keys, token
from cloakwork.cli.output import note, say
from cloakwork.cli.series_command import series
from cloakwork.errors import BudgetError, CloakworkError, InputError

BAD_INPUT, FAILURE = 2, 1

app = typer.Typer(
    name="cloakwork",
    help="Privacy for physical sensors: hide exactly where a source is, still learn its vicinity.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(keys, name="keys")
app.add_typer(token, name="token")
app.add_typer(audit, name="audit")


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
    readings: Annotated[Path | None, typer.Argument(help="CSV file of time,sensor,seq,value.")] = None,
    from_store: Annotated[
        str | None,
        typer.Option(metavar="URL", callback=no_password, help="Recover what a collector has stored instead."),
    ] = None,
    since: Since = None,
    until: Until = None,
    plan: PlanFile = None,
    out: Annotated[Path | None, typer.Option("--out", help="CSV file of recovered sources to write.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture of the recovered map to write.")] = None,
    json: Json = False,
) -> None:
    """Recover the vicinity of the sources from noisy readings."""
    from cloakwork.cli.recover import run_recover

    run_recover(
        site, readings, from_store=from_store, since=since, until=until, plan=plan, out=out, plot=plot, json=json
    )


@app.command()
def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Draw one picture and end, as without a terminal or with CI=true.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for that picture.")] = Path("out"),
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the map in a browser.")] = True,
) -> None:
    """Show people in a simulated flat as a living map, from devices through a broker to a page, until stopped."""
    from cloakwork.cli.demo import run_demo

    run_demo(out, once=once, browser=browser)


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
    period: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How often a device for audits reads, if not as planned.")
    ] = None,
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
        period=period,
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


@app.command()
def collect(
    sites: Annotated[list[Path], typer.Argument(metavar="SITE...", help="Site files, each with its plan beside it.")],
    broker: Annotated[
        str, typer.Option(help="Where devices publish: mqtts://user@host. `embedded` has one inside, `none` none.")
    ] = "embedded",
    password_file: Annotated[Path | None, typer.Option(help="File with the password at the broker.")] = None,
    ca: Authority = None,
    store: StoreUrl = DEFAULT_STORE,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the page and HTTP are.")] = "127.0.0.1:8080",
    certificate: Annotated[Path | None, typer.Option(help="Certificate for https, in PEM form.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    proxied: Annotated[bool, typer.Option("--proxied", help="A proxy on this machine speaks https for it.")] = False,
    group: Annotated[str | None, typer.Option(help="Share the readings with other collectors of this group.")] = None,
    name: Annotated[str, typer.Option(help="Name of its session at the broker; each its own.")] = "cloakwork-collector",
    keep: Annotated[str | None, typer.Option(metavar="SPAN", help="Remove what is older: 90d, 12h or 4w.")] = None,
    home_assistant: Annotated[
        bool, typer.Option("--home-assistant", help="Tell Home Assistant which zones are occupied.")
    ] = False,
) -> None:
    """Take cloaked readings in, keep them, recover sources as they arrive, and show them on a page."""
    from cloakwork.cli.collect import Options, run_collect

    run_collect(
        Options(
            sites=sites,
            broker=broker,
            password_file=password_file,
            ca=ca,
            store=store,
            listen=listen,
            certificate=certificate,
            private_key=private_key,
            proxied=proxied,
            group=group,
            name=name,
            keep=keep,
            home_assistant=home_assistant,
        )
    )


@app.command()
def erase(
    site: SiteName,
    sensor: Annotated[str | None, typer.Option("--id", help="Of this sensor only.")] = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Remove stored readings, and everything that was made from them, for ever."""
    from cloakwork.cli.stored import run_erase

    run_erase(store, site, sensor=sensor, since=since, until=until, sure=yes)


@app.command()
def export(
    site: SiteName,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv or .parquet.")],
    results: Annotated[bool, typer.Option("--results", help="What was recovered instead of the readings.")] = False,
    since: Since = None,
    until: Until = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write stored readings, or what was recovered from them, to a file."""
    from cloakwork.cli.stored import run_export

    run_export(store, site, out=out, results=results, since=since, until=until)


app.command()(series)


def main() -> None:
    """Run a command of `cloakwork`."""
    run_app(app)


def run_app(commands: typer.Typer) -> None:
    """Run a command; exit with 0, with 2 for bad input, with 1 for a failure, and never with a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no sign for a letter shows a question mark
    try:
        commands()
    except (InputError, BudgetError) as problem:
        _stop(str(problem), BAD_INPUT)
    except CloakworkError as problem:
        _stop(str(problem), FAILURE)
    except BrokenPipeError:
        # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as problem:
        name = f"{problem.filename}: " if problem.filename else ""
        _stop(f"{name}{problem.strerror or problem}", FAILURE)
    except MemoryError:
        _stop("not enough memory: use fewer places and sensors, or fewer values", FAILURE)
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
