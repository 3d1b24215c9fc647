"""The harness of the tests on MicroPython: files, a disk with power cuts, and a connection."""

import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import micropython
from tests.micropython import PROGRAMS

BEFORE = {"replaced": b"before", "longer": b"some", "removed": b"here"}
AFTER = {"replaced": b"after, and longer", "longer": b"some and more", "moved": b"moved"}


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


@pytest.fixture
def echo() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


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


def test_on_micropython_the_same_bytes_from_a_broker_lead_to_the_same_events(tmp_path: Path) -> None:
    micropython.copy_sensor(tmp_path)
    there = micropython.run(PROGRAMS / "mutate.py", folder=tmp_path)
    here = subprocess.run([sys.executable, PROGRAMS / "mutate.py"], capture_output=True, text=True, check=True)
    assert (there.stdout, there.stderr) == (here.stdout, "")


@pytest.mark.parametrize("times", [1, 4000])
def test_every_byte_crosses_the_link_unchanged(echo: int, times: int) -> None:
    done = micropython.run(PROGRAMS / "echo.py", args={"host": "127.0.0.1", "port": echo, "times": times})
    assert (done.stdout, done.stderr) == (f"{256 * times} True\n", "")


def test_flushed_data_is_on_the_real_disk_and_the_rest_is_lost(tmp_path: Path) -> None:
    disk = make_disk(tmp_path / "disk")
    done = micropython.run(PROGRAMS / "files.py", disk=disk)
    assert (done.returncode, done.stderr) == (0, "")
    assert held(disk) == AFTER
