"""Writes the reference of the library from its docstrings while the documentation is built: a page for each folder.

`mkdocs.yml` names this file under `hooks`. They hold every public name of `cloakwork`.
"""

import inspect
import re
from collections import defaultdict
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import cloakwork as cw

STUB = Path(cw.__file__).with_suffix(".pyi")
_UNDERLINE = re.compile(r"^-{3,}$")
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
    return files


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
    """The lines with fences around examples, which go on to the next blank line."""
    out: list[str] = []
    inside = False
    for line in [*lines, ""]:
        if not inside and line.lstrip().startswith(">>>"):
            out += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line)
    return "\n".join(out).strip()
