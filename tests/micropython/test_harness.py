"""The harness of the tests on MicroPython: the modules of a device, and a disk that loses what is not flushed."""

from pathlib import Path

from tests import micropython
from tests.micropython import PROGRAMS

BEFORE = {"replaced": b"before", "longer": b"some", "removed": b"here"}
AFTER = {"replaced": b"after, and longer", "longer": b"some and more", "moved": b"moved"}


def make_disk(folder: Path) -> Path:
    folder.mkdir()
    for name, data in BEFORE.items():
        (folder / name).write_bytes(data)
    return folder


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_sensor_imports_on_micropython_from_the_folder_of_a_device(tmp_path: Path) -> None:
    micropython.copy_sensor(tmp_path)
    modules = sorted((tmp_path / "lib" / "cloakwork" / "sensor").glob("[a-z]*.py"))
    here = [path.stem for path in modules if "\nimport socket\n" not in path.read_text(encoding="utf-8")]
    assert "mqtt" in here
    lines = ["import sys", *(f"import cloakwork.sensor.{name}" for name in here)]
    program = tmp_path / "program.py"
    program.write_text("\n".join([*lines, "print(sys.implementation.name)"]), encoding="utf-8")
    done = micropython.run(program, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "micropython\n", "")


def test_flushed_data_is_on_the_real_disk_and_the_rest_is_lost(tmp_path: Path) -> None:
    disk = make_disk(tmp_path / "disk")
    done = micropython.run(PROGRAMS / "files.py", disk=disk)
    assert (done.returncode, done.stderr) == (0, "")
    assert held(disk) == AFTER
