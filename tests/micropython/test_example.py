"""The example for a board, run on MicroPython."""

import shutil
from pathlib import Path

from tests import micropython

EXAMPLE = Path(__file__).parents[2] / "examples" / "esp32_thermal_array"


def test_the_thermal_array_gives_the_exact_mean_of_its_pixels(tmp_path: Path) -> None:
    micropython.copy_sensor(tmp_path)
    shutil.copy(EXAMPLE / "measure.py", tmp_path)
    done = micropython.run(micropython.PROGRAMS / "thermal_array.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"({32 * (82 - 1)}, 256)"
