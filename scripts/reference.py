"""Writes reference pages while the documentation is built; `mkdocs.yml` names this file under `hooks`.

The library comes from its docstrings, a page for each folder; results and errata from the numbers in
`docs/science/results`. A hand-written page gets its tables here: the options of a command below its heading, the keys
of a site file at `<!-- keys: PrivacySpec -->`, the HTTP routes at `<!-- routes -->`, the problems of messages at
`<!-- problems -->`, and a file of `docs/tables` at `<!-- table: attacks -->`.
"""

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import typer.main
from fastapi.openapi.utils import get_openapi
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pydantic import BaseModel

import cloakwork as cw
from cloakwork.cli.app import app
from cloakwork.collect.api import ROUTES
from cloakwork.collect.message_problems import Reason
from cloakwork.site import schema
from papers.__main__ import app as laboratory
from papers.experiments import EXPERIMENTS
from papers.report import FOLDER, errata_page, results_page
from papers.store import read

STUB = Path(cw.__file__).with_suffix(".pyi")
_UNDERLINE = re.compile(r"^-{3,}$")
COMMANDS = "reference/command-line.md"
PROGRAMS = {"cloakwork": app, "python -m papers": laboratory}
_SECTIONS = {"Parameters", "Attributes", "Returns", "Raises", "Notes", "Examples"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages to the part of the navigation that is called Reference, after its first two."""
    [part] = [entry["Reference"] for entry in config.nav or [] if "Reference" in entry]
    part[2:2] = [{f"Library: {folder}": f"reference/{folder}.md"} for folder in public_names()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each folder of the package that has public names; MkDocs calls this when it has its files."""
    for folder, names in public_names().items():
        files.append(File.generated(config, f"reference/{folder}.md", content=page(folder, names)))
    records = [read(name, Path(config.docs_dir) / "science" / FOLDER) for name in EXPERIMENTS]
    for name, text in (("results", results_page(records)), ("errata", errata_page(records))):
        files.append(File.generated(config, f"science/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Add the generated tables to a hand-written page."""
    if page.file.src_uri == COMMANDS:
        tables = {name: text for each in PROGRAMS.items() for name, text in option_tables(*each).items()}
        markdown = re.sub(
            r"^##+ (.+)$", lambda found: found[0] + tables.get(found[1], ""), markdown, flags=re.MULTILINE
        )
    for mark, table in (("<!-- routes -->", route_table), ("<!-- problems -->", problem_table)):
        if mark in markdown:
            markdown = markdown.replace(mark, table())
    markdown = re.sub(r"<!-- keys: (\w+) -->", lambda found: key_table(getattr(schema, found[1])), markdown)
    tables_of = Path(config.docs_dir) / "tables"
    return re.sub(r"<!-- table: (\w+) -->", lambda found: (tables_of / f"{found[1]}.txt").read_text("utf-8"), markdown)


def option_tables(program: str, commands: typer.Typer) -> dict[str, str]:
    """What the help of each command says, by its whole name."""
    group: Any = typer.main.get_command(commands)
    tables = {}
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        tables[f"{program} {name}"] = f"\n\n{command.help}\n" if hasattr(command, "commands") else _options(command)
        for part in getattr(command, "commands", {}).values():
            tables[f"{program} {name} {part.name}"] = _options(part)
    return tables


def _options(command: Any) -> str:
    context = command.context_class(command, info_name=command.name)
    records = [each.get_help_record(context) for each in command.get_params(context) if each.opts != ["--help"]]
    rows = [(f"`{name}`", _plain(text)) for name, text in filter(None, records)]
    return f"\n\n{command.help}\n\n{_table(('argument or option', 'meaning'), rows)}"


def _plain(text: str) -> str:
    """The help of an option without the bounds of its numbers."""
    return re.sub(r"; x>=[\d.]+|x>=[\d.]+;? ?|\[\]", "", text).strip()


def key_table(spec: type[BaseModel]) -> str:
    """The keys of a table of the site file: what the comments in its class say, and the defaults."""
    comments = dict(re.findall(r"(?m)^    (\w+): .*?  # (.+)$", inspect.getsource(spec)))
    rows = []
    for name, field in spec.model_fields.items():
        choices = ", ".join(f"`{json.dumps(one)}`" for one in get_args(field.annotation) if isinstance(one, str))
        meaning = ": ".join(filter(None, (choices, comments.get(name, ""))))
        plain = isinstance(field.default, (str, int, float)) or (isinstance(field.default, list) and field.default)
        default = "needed" if field.is_required() else f"`{json.dumps(field.default)}`" if plain else ""
        rows.append((f"`{name}`", meaning, default))
    return _table(("key", "meaning", "default"), rows)


def route_table() -> str:
    """The routes of the collector, from their declarations."""
    document = get_openapi(title="", version="0", routes=ROUTES)
    rows = [
        (f"`{method.upper()} {path}`", ", ".join(one["x-roles"]) or "anyone", one["description"].split("\n\n")[0])
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]
    return _table(("route", "roles", "what it does"), rows)


def problem_table() -> str:
    """What can be odd about a message, as the collector words it."""
    rows = [(f"`{code}`", text) for code, text in (reason.split(": ", 1) for reason in Reason)]
    return _table(("problem", "meaning"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    safe = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ("---",) * len(head), *safe])


def public_names() -> dict[str, list[str]]:
    """The public names of each folder, as the package's stub lists them."""
    names: dict[str, list[str]] = defaultdict(list)
    for folder, name in re.findall(r"^from \.(\w+) import (\w+) as", STUB.read_text(encoding="utf-8"), re.MULTILINE):
        names[folder].append(name)
    return names


def page(folder: str, names: list[str]) -> str:
    """The Markdown of one page."""
    parts = [f"# cloakwork: {folder}", f"Public names of `cloakwork.{folder}`, each also as `cw.NAME`."]
    for name in sorted(names, key=str.lower):
        parts += [f"## {name}", *described(name, getattr(cw, name))]
    return "\n\n".join(parts) + "\n"


def described(name: str, thing: object) -> list[str]:
    """The signature and the docstring of a class, with its public methods, or of a function."""
    parts = [f"```python\n{signature(name, thing)}\n```", markdown(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for method, value in vars(thing).items():
            found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not method.startswith("_") and inspect.isfunction(found) and found.__doc__:
                shown = f"{name}.{method}" if isinstance(value, property) else signature(f"{name}.{method}", found)
                first = markdown(inspect.cleandoc(found.__doc__).split("\n\n", maxsplit=1)[0])
                parts.append(f"`{' '.join(shown.split())}`\n:   {' '.join(first.split())}")
    return [part for part in parts if part]


def signature(name: str, thing: object) -> str:
    """A call as one would write it, without types; just the name where there is none."""
    try:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"{name}{inspect.Signature([parameter for parameter in plain if parameter.name != 'self'])}"


def markdown(text: str) -> str:
    """A docstring in the style of NumPy as Markdown."""
    lines, out, section = text.splitlines(), list[str](), ""
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _UNDERLINE.match(line) and section:
            continue
        if _UNDERLINE.match(following) and line in _SECTIONS:
            section = line
            out += ["", f"**{line}**", ""]
        elif section in {"Parameters", "Attributes", "Raises"} and line and not line.startswith(" "):
            out += ["", f"`{line}`"]
        elif section in {"Parameters", "Attributes", "Raises"} and line.strip():
            out.append((":   " if out[-1].startswith("`") else "    ") + line.strip())
        else:
            out.append(line)
    return _fenced(out)


def _fenced(lines: list[str]) -> str:
    """The lines with fences around examples, which end at a blank line; outside them, no underscore is emphasis."""
    out: list[str] = []
    inside = False
    for line in [*lines, ""]:
        if not inside and line.lstrip().startswith(">>>"):
            out += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line if inside else re.sub(r"(`[^`]*`)|_", lambda found: found[1] or r"\_", line))
    return "\n".join(out).strip()
