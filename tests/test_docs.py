"""Documentation that runs: README, pages and stories, commands and keys."""

import math
import re
import subprocess
import tomllib
from enum import Enum
from importlib.resources import files
from pathlib import Path
from unittest.mock import ANY

import matplotlib as mpl
import pytest
from mkdocs.exceptions import PluginError
from pydantic import BaseModel

import cloakwork as cw
from cloakwork.site import parse_site, schema
from scripts import reference, stories
from tests.forking import python

ROOT = Path(__file__).parent.parent
STORIES = sorted((ROOT / "examples").glob("*.py"))
FLAT_PAGES = ("stays.md", "limits.md")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, f"{page.name}", "exec"), names)  # noqa: S102 - our own documentation


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_site_files_on_a_page_load(page: Path) -> None:
    for block in blocks(page, "toml"):
        if {"name", "physics", "privacy"} <= set(tomllib.loads(block)):
            parse_site(block, name=page.name)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built as `make docs` builds it, which runs the stories and fails on a broken link."""
    folder = tmp_path_factory.mktemp("site")
    words = ("build", "--quiet", "--strict", "--site-dir", folder)
    building = python("from mkdocs.__main__ import cli; cli()", *words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    said = building.communicate()[1]
    assert building.returncode == 0, said
    return folder


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_a_story_is_told_with_output_and_one_picture(story: Path, site: Path) -> None:
    name = stories.page_name(story)
    page = (site / "stories" / name / "index.html").read_text(encoding="utf-8")
    assert page.count('<pre class="output">') >= 3
    assert re.findall(r'<img alt="([^"]+)" src="([^"]+)"', page) == [(ANY, f"../{name}-1.png")]
    assert (site / "stories" / f"{name}-1.png").read_bytes().startswith(b"\x89PNG")
    for heading in ("What it cost", "What cannot be concluded"):
        assert re.search(rf"<h2 [^>]*>{heading}", page), heading
    assert "Read on:" in page


def test_the_door_counter_as_a_script_writes_its_visits_and_its_picture(tmp_path: Path) -> None:
    table, picture = tmp_path / "visits.csv", tmp_path / "new" / "door.png"
    code = f"import runpy; runpy.run_path({str(ROOT / 'examples' / 'door_counter.py')!r}, run_name='__main__')"
    said = python(code, table, picture, cwd=tmp_path, stdout=subprocess.PIPE, text=True).communicate()[0]
    assert "Wednesday of week 4" in said
    assert table.read_text(encoding="utf-8").startswith("time,card\n2026-10-05T")
    assert picture.read_bytes().startswith(b"\x89PNG")


STORY = """\
# %% [markdown]
\"\"\"# A story

See [Limits](../docs/science/limits.md).
\"\"\"

# %%
from matplotlib import pyplot as plt

print("a < b")

# %% [markdown]
# In *between*.

# %%
_, axes = plt.subplots()
axes.set_title("a line")

# %% tags=["remove-cell"]
print("unseen", "__file__" in globals())
"""


def test_a_page_has_prose_code_output_and_pictures_in_their_order() -> None:
    page = stories.tell(Path("a_story.py"), STORY)
    parts = [
        "# A story",
        "](../science/limits.md)",
        "```python\nfrom",
        "a &lt; b</pre>",
        "In *between*.",
        "```python\n_",
        "![a line]",
    ]
    places = [page.markdown.index(part) for part in parts]
    assert places == sorted(places)
    assert list(page.pictures) == ["a-story-1.png"]
    assert "unseen" not in page.markdown
    assert "python examples/a_story.py" in page.markdown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (STORY.replace('print("a < b")', "def fail():\n    1 / 0\n\nfail()"), "line 11: ZeroDivisionError"),
        (STORY.replace('print("a < b")', "x = = 1"), "line 10: SyntaxError"),
        (STORY.replace('print("a < b")', "raise SystemExit"), "line 10: SystemExit"),
        (STORY.replace('print("a < b")', "import warnings; warnings.warn('old')"), "line 10: UserWarning: old"),
        (STORY.replace("# %%\n_", "# %% python\n_"), "line 15: a cell starts with"),
        ("import this\n" + STORY, "line 1: a story starts with"),
    ],
)
def test_a_story_that_fails_says_where(text: str, complaint: str) -> None:
    with pytest.raises(PluginError, match=f"a_story.py, {complaint}"):
        stories.tell(Path("a_story.py"), text)


def test_the_start_page_has_the_contract_word_for_word() -> None:
    assert CONTRACT in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference_that_is_built(site: Path) -> None:
    for folder, names in reference.public_names().items():
        page = (site / "reference" / folder / "index.html").read_text(encoding="utf-8")
        assert [name for name in names if f">{name}</h2>" not in page] == []
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_every_public_name_has_an_example_that_runs() -> None:
    """Errors and enumerations are used in those of others."""
    for name, thing in ((name, getattr(cw, name)) for name in cw.__all__):
        if not (isinstance(thing, type) and issubclass(thing, (Exception, Enum))):
            own = [part.__doc__ or "" for part in (thing, *vars(thing).values()) if hasattr(part, "__doc__")]
            assert any(">>>" in text for text in own), name


def test_every_command_has_a_heading_that_gets_its_options() -> None:
    page = (ROOT / "docs" / reference.COMMANDS).read_text(encoding="utf-8")
    for program, commands in reference.PROGRAMS.items():
        for name in reference.option_tables(program, commands):
            assert re.search(rf"^##+ {name}$", page, flags=re.MULTILINE), name


def test_nothing_comes_from_another_host_and_every_block_is_a_block(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|<link[^>]* href)="(?:https?:)?//[^"]*', text), page
        assert not re.findall(r"<p><code>(?:sh|python|py|toml|text)\n", text), f"{page}: a fence inside a list"
    assert not [css for css in site.rglob("*.css") if re.search(r"url\([\"']?(?:https?:)?//", css.read_text("utf-8"))]


def test_generated_tables_have_options_and_routes(site: Path) -> None:
    commands = (site / "reference" / "command-line" / "index.html").read_text(encoding="utf-8")
    for option in ("--no-simulation", "--series-by", "--scheduler"):
        assert f"<td><code>{option}" in commands
    routes = (site / "reference" / "http-api" / "index.html").read_text(encoding="utf-8")
    assert "<td><code>GET /v1/sites/{site}/timeline</code></td>\n<td>analyst, operator</td>" in routes


def test_each_key_of_a_site_file_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "site-files.md").read_text(encoding="utf-8")
    tables = [value for value in vars(schema).values() if isinstance(value, type) and issubclass(value, BaseModel)]
    for table in tables:
        rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\|", reference.key_table(table), re.MULTILINE)
        inserted = f"<!-- keys: {table.__name__} -->" in page
        for key, meaning in rows:
            assert (inserted and meaning) or re.search(rf"`\W*{key}\b", page), f"{table.__name__}.{key}"


def test_figures_of_the_example_flat_are_those_that_the_library_computes() -> None:
    texts = {name: " ".join((ROOT / "docs" / "science" / name).read_text("utf-8").split()) for name in FLAT_PAGES}
    cloak = parse_site(files("cloakwork.site").joinpath("example.toml").read_text("utf-8"), name="flat").cloak()
    assert cloak.slow is not None
    share = float((cloak.slow.deviations(cloak.steps) / cloak.sigmas).max() ** 2)
    assert f"a reading has {1 + share:.2f} times the variance" in texts["stays.md"]
    assert f"the mean of ten minutes {1 + 10 * share:.2f} times" in texts["stays.md"]
    risk = cw.bayes_risk(cloak.physics, cloak.claimed_sigmas, readings=math.ceil(cloak.stay_worth(480)))
    assert f", {math.ceil(1000 * risk.right_place) / 10:.1f} % and" in texts["limits.md"], "after eight hours"


def test_contributing_names_the_targets() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in ("make test", "make check", "make demo", "make bench", "make docs"):
        assert target in text


CONTRACT = """\
import cloakwork as cw

line = cw.HeatLine(n=100, m=50, T=0.05)                    # physics: 100 places, 50 sensors
cloak = cw.Cloak(line, epsilon=1.0, delta=1e-6, alpha=0.01)  # hide any move of up to 0.01
readings = line.apply(cw.sources(line, [0.24, 0.76]))      # two unit sources
noisy = cloak.release(readings)                            # what the sensors send
found = cw.recover(noisy, cloak)                           # what the analyst learns
print(found.sources, cw.emd(found.map, cw.sources(line, [0.24, 0.76]), line.space))
"""
