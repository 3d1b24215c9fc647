"""The house: imports point one way, the sensor needs nothing, and importing is quick to stay so."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cloakwork

ROOT = Path(cloakwork.__file__).parent
LAYERS = [
    {"errors", "_checks", "_compile"},
    {"physics"},
    {"accuracy"},
    {"privacy", "recovery"},
    {"site"},
    {"readings", "mqtt"},
    {"keys"},
    {"device", "auditing", "series"},
    {"collect"},
    {"demo"},
    {"cli"},
]
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists())


def height(name: str) -> int:
    return next(level for level, names in enumerate(LAYERS) if name in names)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_all_public_names_load_and_others_do_not() -> None:
    for name in cloakwork.__all__:
        assert getattr(cloakwork, name).__name__ == name
    assert set(cloakwork.__all__) <= set(dir(cloakwork))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = cloakwork.nonsense  # type: ignore[attr-defined]
