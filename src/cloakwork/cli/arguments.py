"""Arguments and options that several commands share, each declared once."""

import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakwork.cli.files import is_folder, is_special, refuse_input, refuse_unwritable
from cloakwork.cli.time_arguments import parse_moment
from cloakwork.errors import InputError

DEFAULT_STORE = "cloakwork.db"
RARE = "Rarely needed"  # the second panel of options in help
INIT = "Write an example with: cloakwork init"
FREEZE = "Write the plan with: cloakwork plan SITE --out FILE"
KEYS = "Create it with: cloakwork keys new"
STORE = "Name the store that the collector created."
TABLES = (".csv", ".jsonl", ".parquet")
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
INPUTS, OUTPUTS = "cloakwork.inputs", "cloakwork.outputs"  # of a running command


def option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """An option with its help, under the heading of its panel."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def argument(text: str, **more: Any) -> Any:
    """An argument with its help."""
    return typer.Argument(help=text, **more)


def reads(hint: str = "") -> Callable[..., Any]:
    """Return the callback of a file that a command reads: it must exist; else the `hint` says how to get one.

    Addresses, and names in which {id} stands for a sensor, are no files.
    """

    def check(context: typer.Context, value: Any) -> Any:
        for name in map(str, value if isinstance(value, list | tuple) else [value]):
            if value is None or context.resilient_parsing or "://" in name or "{id}" in name:
                continue
            if not Path(name).exists():
                remedy = f" {INIT if name.endswith('.toml') else hint}".rstrip()
                raise InputError(f"{name}: {os.strerror(2)}.{remedy}", path=name)
            context.meta.setdefault(INPUTS, []).append(Path(name))
        return value

    return check


def reads_site(context: typer.Context, path: Path) -> Path:
    """Check a site file that is read together with the plan next to it, if there is one."""
    from cloakwork.site import plan_beside  # noqa: PLC0415 - help needs no library

    context.meta.setdefault(INPUTS, []).append(plan_beside(path))
    return Path(reads(INIT)(context, path))


def writes(*endings: str, folder: bool = False) -> Callable[..., Any]:
    """Return the callback of a file that a command writes: its name must end in one of these, and be possible.

    With `folder`, a name without an ending names a folder.
    """

    def check(context: typer.Context, option: typer.CallbackParam, path: Path | None) -> Path | None:
        if path is None or context.resilient_parsing or (folder and is_folder(path)):
            return path
        name = option.opts[0]
        refuse_unwritable(name, path)
        if endings and path.suffix.lower() not in endings and not is_special(path):
            also = ", or the name of a folder" if folder else ""
            raise InputError(f"{name} {path}: give a name that ends in {', '.join(endings)}{also}.", path=str(path))
        if endings == PICTURES:
            import_module("matplotlib")  # if it is missing, the error comes before the work
        context.meta.setdefault(OUTPUTS, []).append(path)
        return path

    return check


def refuse_overwritten(context: typer.Context) -> None:
    """Refuse, for all options of a command together, to write over what it reads, or two results to one file."""
    others = list(context.meta.get(INPUTS, ()))
    for path in context.meta.get(OUTPUTS, ()):
        refuse_input(path, *others)
        others.append(path)


def no_password(context: typer.Context, option: typer.CallbackParam, url: str | None) -> str | None:
    """Refuse a password on the command line, where a list of processes shows it; the environment may hold one."""
    source = context.get_parameter_source(option.name or "")
    if source is None or source.name != "COMMANDLINE" or url is None:
        return url
    if re.match(r"[\w+.-]+://[^:/]*:[^@]*@", url) or re.search(r"[?&]password=", url):
        raise InputError(
            f"{option.opts[0]}: do not put the password on the command line, where others can see it. Set the "
            f"environment variable PGPASSWORD{', or CLOAKWORK_STORE to the whole address' if option.envvar else ''}.",
            option=option.opts[0],
        )
    return url


def existing_store(context: typer.Context, option: typer.CallbackParam, url: str | None) -> Any:
    """Refuse a password on the command line, and a store that does not exist."""
    return reads(STORE)(context, no_password(context, option, url))


def with_option_names(text: str, context: typer.Context) -> str:
    """Return a text of the library with the options of a command in place of the parameters that it names."""
    options = {each.name or "": each.opts[0] for each in context.command.params if each.param_type_name == "option"}
    apart = "|".join(name for name in options if "_" in name) or "(?!)"  # other names are also plain words
    named = rf"\b(?:({'|'.join(options) or '(?!)'})=(?=\S)|({apart})\b)"
    return re.sub(named, lambda found: f"{options[found[1]]} " if found[1] else options[found[2]], text)


def error_with_option_names(problem: InputError, context: typer.Context) -> InputError:
    """Return an error of the library in terms of the options of a command."""
    text = with_option_names(str(problem), context)
    parameter: Any = problem.values.get("parameter", ())
    names = (parameter,) if isinstance(parameter, str) else tuple(parameter)
    known = [each.opts[0] for name in names for each in context.command.params if each.name == name]
    missing = ", ".join(option for option in known if option not in text)
    text = f"{missing}: {text}" if missing else text
    return problem if text == str(problem) else type(problem)(text, **problem.values)


SiteFile = Annotated[Path, argument("The site file.", metavar="SITE", callback=reads(INIT))]
PlannedSite = Annotated[Path, argument("The site file.", metavar="SITE", callback=reads_site)]
PlanFile = Annotated[
    Path | None,
    option(
        "The frozen plan; by default the one next to the site file, if any.",
        "--plan",
        metavar="FILE",
        callback=reads(FREEZE),
    ),
]
Json = Annotated[bool, option("Print one JSON object instead of text.", "--json")]
BrokerUrl = Annotated[str, option("Broker to send to: mqtt://host, or mqtts://user@host:8883 with TLS.")]
PasswordFile = Annotated[Path | None, option("File that holds the broker password.", metavar="FILE", callback=reads())]
Authority = Annotated[
    Path | None, option("CA certificate of the broker, in PEM form.", metavar="FILE", callback=reads(), panel=RARE)
]
KeyFile = Annotated[Path, argument("The site's key file.", metavar="KEYS", callback=reads(KEYS))]
SensorId = Annotated[str, option("Id of the sensor.", "--id")]


def _store(check: Callable[..., Any]) -> Any:
    return typer.Option(
        "--store",
        envvar="CLOAKWORK_STORE",
        callback=check,
        help="The store: a file, or postgresql://USER@HOST/DATABASE.",
    )


StoreUrl = Annotated[str, _store(no_password)]
ExistingStore = Annotated[str, _store(existing_store)]
SiteName = Annotated[str, argument("The name of the site.", metavar="SITE")]
Since = Annotated[
    int | None,
    option("Start of the period: a date, an ISO time or Unix ms.", metavar="TIME", parser=parse_moment),
]
Until = Annotated[int | None, option("End of the period, exclusive.", metavar="TIME", parser=parse_moment)]
Scheduler = Annotated[
    str | None, option("Work on a Dask cluster: its scheduler, tcp://HOST:8786.", metavar="URL", panel=RARE)
]
