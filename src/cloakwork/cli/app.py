"""The `cloakwork` command: which subcommands there are, and how a failure ends."""

import os
import re
import shlex
import sys
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cloakwork._extras import optional_parts
from cloakwork.cli.arguments import error_with_option_names, option, refuse_overwritten
from cloakwork.cli.output import err, note, out, working
from cloakwork.errors import BudgetError, CloakworkError, InputError, PlanError

FAILURE, BAD_INPUT = 1, 2
LOADING = "loading the library"
PREPARING = "preparing the solver, once on this machine, about 20 s"
# one line a command, by job; the module of the same name in this folder has the rest
JOBS = {
    "Start": {
        "demo": "Run a simulated flat, or your own site, live: devices, broker, collector and map.",
        "init": "Write a commented example site file to start from.",
    },
    "Plan": {
        "plan": "Show what a site hides, from whom, and how good its map is; freeze the plan for its devices.",
        "sheet": "Write a page for tenants, from the plan: what is measured, what is hidden, for how long.",
        "calibrate": "Fit the physics of a floor plan to the true readings of a walk, before privacy starts.",
        "simulate": "Write the noisy readings that a site would send. For experiments: this noise is not private.",
    },
    "Devices": {
        "keys": "Create and manage the keys that remove the noise. For the trusted party.",
        "provision": "Write everything that a device needs into a folder.",
        "sensor": "Run as a device: measure, cloak and send until stopped.",
        "audit": "Test a guarantee from outside: a program, two recordings, or a test device.",
    },
    "Run": {
        "collect": "Receive cloaked readings, store them, recover sources live and show them on a page.",
        "token": "Create, list and revoke the tokens that give access to a collector.",
        "export": "Write stored readings, or the sources recovered from them, to a file.",
        "erase": "Remove stored readings and what was derived from them; exports keep theirs.",
    },
    "Analyse": {
        "recover": "Follow sources through noisy readings: where each was, and when.",
        "series": "Publish a private series of events or counts, smoothed or summed.",
        "unveil": "Remove the noise from readings with the keys. The output is not private.",
    },
}
COMMANDS = {name: text for commands in JOBS.values() for name, text in commands.items()}
_PLAIN: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}


class _Command(TyperCommand):
    """A command with plain help, its rare options last, that never writes over what it reads."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; help and refused arguments come before Numba is loaded, which takes a second."""
        refuse_overwritten(ctx)
        with working(LOADING):
            from cloakwork._compile import announce_compiling, avoid_gathers

            avoid_gathers()
        if err.is_terminal:
            announce_compiling(partial(note, PREPARING))
        try:
            return super().invoke(ctx)
        except InputError as problem:
            raise error_with_option_names(problem, ctx) from None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, those of a panel under its heading."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            if (record := each.get_help_record(ctx)) is not None:
                # without the types and bounds of numbers, which Click adds
                name = re.sub(r" <[^>]*>", "", record[0])
                text = re.sub(r"; x>=[\d.]+|x>=[\d.]+; | *\[x>=[\d.]+\]", "", record[1])
                panels.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append((name, text.rstrip()))
        for title, records in panels.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _LazyCommands(TyperGroup):
    """Loads the module of a command when it is called, so that help and errors are quick."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        with working(LOADING):
            module = import_module(f"cloakwork.cli.{cmd_name}")
        command = getattr(module, cmd_name)
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                each.cls = _Command
            group = typer.main.get_group(command)
            group.name, group.help = cmd_name, COMMANDS[cmd_name]
            return group
        single = typer.Typer(**_PLAIN)
        single.command(cmd_name, cls=_Command, help=COMMANDS[cmd_name])(command)
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for one that is not there, say which is meant."""
        if args and args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for job, commands in JOBS.items():
            with formatter.section(job):
                formatter.write_dl(list(commands.items()))


app = typer.Typer(name="cloakwork", cls=_LazyCommands, **_PLAIN)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"cloakwork {version('cloakwork')}")
        raise typer.Exit


@app.callback()
def top(
    show: Annotated[bool, option("Print the version.", "--version", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Differential privacy for physical sensors: see which rooms are in use, not which chair someone sits on."""


def run_app(commands: typer.Typer) -> None:
    """Run a command: exit with 0 on success, 2 on bad input, 1 on failure, and never with a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter shows a question mark
    try:
        with optional_parts():
            commands()
    except BrokenPipeError:
        # the reader of our output, `head` say, has closed it: not a failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as problem:
        if os.environ.get("CLOAKWORK_TRACEBACK") and not isinstance(problem, CloakworkError | OSError | MemoryError):
            raise
        note(f"cloakwork: {_message(problem)}")
        sys.exit(BAD_INPUT if isinstance(problem, InputError | BudgetError) else FAILURE)


def _message(problem: Exception) -> str:
    """What went wrong, and what to do."""
    match problem:
        case PlanError() if problem.values["rewrite"]:
            command = ["cloakwork", "plan", str(problem.values["site"] or "SITE"), "--out", str(problem.values["plan"])]
            return f"{problem} Write the plan with: {shlex.join(command)}"
        case CloakworkError():
            return str(problem)
        case OSError():
            return f"{f'{problem.filename}: ' if problem.filename else ''}{problem.strerror or problem}"
        case MemoryError():
            return "not enough memory: use fewer places and sensors, or fewer values"
    return (
        f"internal error: {type(problem).__name__}. This is a bug in Cloakwork; set CLOAKWORK_TRACEBACK=1 to see "
        "where, and report it."
    )
