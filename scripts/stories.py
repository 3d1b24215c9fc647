"""Runs the stories in `examples/` while the documentation is built, and makes a page of each.

A story is a script in the percent format, which VS Code and Jupytext open as a notebook. Its cells run in one
namespace, as they do there; the page has their prose and code, and what they printed and drew. `mkdocs.yml` names this
file under `hooks`.
"""

import io
import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parent.parent / "examples"
CODE, PROSE, UNSEEN = "# %%", "# %% [markdown]", '# %% tags=["remove-cell"]'
YOURSELF = """\
*This page is `examples/{name}`, and was run when the documentation was built. `python examples/{name}` runs it again;
VS Code, or Jupyter with Jupytext, opens the file as a notebook.*
"""


@dataclass(frozen=True)
class Cell:
    """A part of a story: its kind, which is its marker, the number of the line after that, and what it holds."""

    kind: str
    line: int
    text: str


@dataclass(frozen=True)
class Page:
    """A story that was run: Markdown, and its pictures as PNG under the names by which the text calls them."""

    markdown: str
    pictures: dict[str, bytes]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page and its pictures for each story; MkDocs calls this when it has gathered its files."""
    for path in sorted(EXAMPLES.glob("*.py")):
        page = tell(path, path.read_text(encoding="utf-8"))
        files.append(File.generated(config, f"stories/{page_name(path)}.md", content=page.markdown))
        for name, picture in page.pictures.items():
            files.append(File.generated(config, f"stories/{name}", content=picture))
    return files


@cache  # `mkdocs serve` builds again whenever a page changes
def tell(path: Path, text: str) -> Page:
    """Run a story from top to bottom; an error says in which line it happened."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    names: dict[str, object] = {"__name__": path.stem}  # and no __file__, as in a notebook
    mpl.use("Agg")
    for cell in cells(path, text):
        if cell.kind == PROSE:
            parts.append(prose(cell.text))
            continue
        said = run(path, cell, names)
        if cell.kind == CODE:
            parts += [f"```python\n{cell.text.strip()}\n```", *output(said)]
        for alt, picture in drawn():
            name = f"{page_name(path)}-{len(pictures) + 1}.png"
            pictures[name] = picture
            parts.append(f"![{alt}]({name})")
    parts.append(YOURSELF.format(name=path.name))
    return Page("\n\n".join(parts), pictures)


def page_name(path: Path) -> str:
    """The name of a story's page, written like those of other pages."""
    return path.stem.replace("_", "-")


def cells(path: Path, text: str) -> Iterator[Cell]:
    """Cut a script at its markers."""
    marker = re.compile(r"^# ?%%.*$", flags=re.MULTILINE)
    marks = list(marker.finditer(text))
    if not marks or marks[0].start() > 0:
        raise PluginError(f"{path}, line 1: a story starts with {PROSE!r}.")
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        line = text.count("\n", 0, mark.start()) + 1
        if mark.group() not in {CODE, PROSE, UNSEEN}:
            raise PluginError(f"{path}, line {line}: a cell starts with {CODE!r}, {PROSE!r} or {UNSEEN!r}.")
        yield Cell(mark.group(), line + 1, text[mark.end() + 1 : following.start() if following else len(text)])


def prose(text: str) -> str:
    """The Markdown in comments or in a string; links to pages, written for the file, become links between pages."""
    quoted = re.fullmatch(r'\s*"""(.*)"""\s*', text, flags=re.DOTALL)
    markdown = quoted.group(1) if quoted else re.sub(r"^# ?", "", text, flags=re.MULTILINE)
    return markdown.strip().replace("](../docs/", "](../")


def run(path: Path, cell: Cell, names: dict[str, object]) -> str:
    """Run a cell, and return what it printed."""
    said = io.StringIO()
    try:
        code = compile("\n" * (cell.line - 1) + cell.text, str(path), "exec")  # lines are counted as in the file
        with redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, names)  # noqa: S102 - our own examples
    except (Exception, SystemExit) as error:
        plt.close("all")
        raise PluginError(f"{path}, line {line_of(error, path)}: {type(error).__name__}: {error}") from error
    return said.getvalue()


def line_of(error: BaseException, path: Path) -> int | None:
    """The line of a story at which an error came up, or from which was called what failed."""
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)


def output(said: str) -> list[str]:
    """What was printed, as a block of its own; lines that are too long for the page are broken by it."""
    return [f'<pre class="output">{escape(said.strip(chr(10)))}</pre>'] if said.strip() else []


def drawn() -> Iterator[tuple[str, bytes]]:
    """Each open figure as PNG, with its title for those who cannot see it; closes it."""
    for number in plt.get_fignums():
        figure = plt.figure(number)
        picture = io.BytesIO()
        figure.savefig(picture, dpi=150, format="png")
        yield figure.get_suptitle() or figure.axes[0].get_title(), picture.getvalue()
        plt.close(figure)
