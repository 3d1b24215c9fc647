"""Compiled loops are compiled again when anything that they call has changed, and Numba's settings stay as they are."""

import os
import subprocess
import sys
from pathlib import Path

LOOP = """
from cloakwork._compile import compiled
from called import part

@compiled
def loop(x):
    return part(x)
"""
CALLED = """
from cloakwork._compile import compiled_part

@compiled_part
def part(x):
    return x + {}
"""


def test_a_loop_follows_a_change_in_another_file_of_its_folder(tmp_path: Path) -> None:
    def answer(added: int) -> str:
        (tmp_path / "called.py").write_text(CALLED.format(added))
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from loops import loop; print(loop(1))"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    (tmp_path / "loops.py").write_text(LOOP)
    assert answer(1) == "2"
    cached = list((tmp_path / "__pycache__").glob("*.nbi"))
    assert cached
    for path in cached:  # as if compiled some time ago: clocks of file systems are coarse
        os.utime(path, ns=(1, 1))
    assert answer(2) == "3"


def test_importing_the_library_changes_no_setting_of_numba() -> None:
    code = """
import numba
before = {name: getattr(numba.config, name) for name in dir(numba.config) if name.isupper()}
import cloakwork as cw
[getattr(cw, name) for name in cw.__all__]
print({name for name, value in before.items() if getattr(numba.config, name) != value})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
