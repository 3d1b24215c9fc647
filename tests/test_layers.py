"""The house: imports point one way and through faces, a name has one meaning, messages read well."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import cloakwork
from scripts.messages import messages

ROOT = Path(cloakwork.__file__).parent
LAYERS = [
    {"errors", "_checks", "_compile", "_extras", "_files", "_method_cache", "parallel"},
    {"physics"},
    {"accuracy"},
    {"privacy", "recovery"},
    {"site"},
    {"readings", "mqtt"},
    {"keys"},
    {"device", "auditing", "series", "fitting", "contacts"},
    {"collect"},
    {"demo"},
    {"cli"},
]
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists())


def height(name: str) -> int:
    return next(level for level, names in enumerate(LAYERS) if name in names)


@cache  # most tests look at every module
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layers"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_from_layers_below_it(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        for name in imports(path):
            if not name.startswith("cloakwork."):
                assert name != "cloakwork", f"{path} imports the public names: import from their home"
                continue
            other = name.split(".")[1]
            if other in {folder, "sensor"}:
                continue
            assert folder != "sensor", f"{path} imports {name}: the sensor imports the standard library only"
            assert height(other) < height(folder), f"{path} imports {name}"


def test_the_product_does_not_import_the_laboratory() -> None:
    assert [
        str(path) for path in ROOT.rglob("*.py") if any(name.split(".")[0] == "papers" for name in imports(path))
    ] == []


def test_every_folder_has_a_layer() -> None:
    assert [name for name in FOLDERS if name != "sensor" and not any(name in layer for layer in LAYERS)] == []


def test_the_sensor_imports_the_standard_library_only() -> None:
    for path in (ROOT / "sensor").rglob("*.py"):
        tops = {name.split(".")[0] for name in imports(path)}
        assert tops <= set(sys.stdlib_module_names) | {"cloakwork"}


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize("statement", ["import cloakwork", "import cloakwork.sensor"])
def test_importing_loads_no_numpy(statement: str) -> None:
    assert not loaded_after(statement) & {"numpy", "scipy", "numba", "networkx", "matplotlib"}


def test_commands_load_quickly() -> None:
    """Drawing, networks and all of SciPy's distributions take longer to load than most commands to work."""
    commands = "from cloakwork.cli import plan, recover, provision, collect, demo"
    assert not loaded_after(commands) & {"matplotlib", "networkx", "scipy.stats"}


def test_all_public_names_load_and_others_do_not() -> None:
    for name in cloakwork.__all__:
        assert getattr(cloakwork, name).__name__ == name
    assert set(cloakwork.__all__) <= set(dir(cloakwork))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = cloakwork.nonsense  # type: ignore[attr-defined]


def test_imports_between_folders_use_the_face() -> None:
    """`from cloakwork.privacy import Cloak`, not `from cloakwork.privacy.cloak`; boards import sensor's modules."""
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).parts[0]
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "cloakwork" and len(parts) > 2 and parts[1] not in {own, "sensor"}:
                pytest.fail(f"{path.relative_to(ROOT)} imports {name}: add what it needs to {parts[1]}/__init__.py")


def test_a_public_class_or_module_name_occurs_once() -> None:
    """Files of cli/ are named after their commands, and the sensor has errors of its own: these do not count."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        module = path.relative_to(ROOT)
        if module.parts[:2] == ("device", "board"):
            continue  # what a board's owner edits, under the names that boards expect
        if module.parts[0] != "cli" and path.stem not in {"__init__", "errors"}:
            homes[path.stem].append(str(module))
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[f"class {node.name}"].append(str(module))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_every_exception_is_in_errors() -> None:
    """Those of the sensor have a module of their own, which boards hold."""
    for path in ROOT.rglob("*.py"):
        if path.name == "errors.py":
            continue
        for node in ast.walk(tree_of(path)):
            bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
            assert not any(base.endswith(("Error", "Exception", "Warning")) for base in bases), (
                f"{path}: {ast.unparse(node)[:60]}"
            )


def strings(path: Path) -> list[str]:
    """The strings of a module, without its docstrings."""
    tree = tree_of(path)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    docstrings = {id(node.value) for node in nodes}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return [node.value for node in constants if isinstance(node.value, str)]


def test_only_the_command_line_names_its_options() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] != "cli" and path.name != "__main__.py":  # a device's own command line
            named = [text for text in strings(path) if re.search(r"(^|[\s`'(])--[a-z]", text)]
            assert named == [], path


AWKWARD = r"\b(told|such that|at the most|by itself|by themselves|nobody can)\b|^(Who|What) [a-z]+ [^?]*\.$"


def test_messages_read_as_plain_english() -> None:
    texts = [message.text for message in messages()]
    assert len(texts) > 300
    assert [text for text in texts if re.search(AWKWARD, text)] == []
