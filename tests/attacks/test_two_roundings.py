"""Attack: a thermal array rounds each pixel, and the device rounds their mean again."""

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cloakwork.device import provision
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import noise_table
from cloakwork.sensor.board import read_config
from cloakwork.sensor.device import Device
from cloakwork.sensor.store import Folder
from cloakwork.site import freeze, load_site
from tests.attacks.conftest import Attack
from tests.attacks.released_law import exact_delta

RECIPE = Path(__file__).parents[2] / "examples" / "esp32_thermal_array" / "measure.py"
EPSILON, DELTA = 4.0, 1e-5
PIXELS, HARDWARE = 64, 0.25
FINE = 1000  # parts of a hardware step in which true temperatures are given
SITE = f"""
name = "room"
sensors = 1
baseline = 20.0

[physics]
kind = "line"
places = 20
T = 0.05

[sources]
kind = "pulse"

[privacy]
epsilon = {EPSILON}
delta = {DELTA}
alpha = 0.05
scope = "sensor"
resolution = {HARDWARE}
"""


class Chip:
    """The registers of the array: each pixel rounded to a quarter of a degree, in twelve bits."""

    def __init__(self) -> None:
        self.truth = np.zeros(PIXELS, dtype=np.int64)

    def readfrom_mem(self, *_: int) -> bytes:
        quarters = (self.truth + FINE // 2) // FINE
        return b"".join(int(q & 0xFFF).to_bytes(2, "little") for q in quarters)


def shipped_read(chip: Chip) -> Callable[[], tuple[int, int]]:
    """The recipe's own `read`, without the parts that need a board."""
    tree = ast.parse(RECIPE.read_text())
    kept: list[ast.stmt] = []
    for node in tree.body:
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloakwork")
        constant = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if ours or constant or (isinstance(node, ast.FunctionDef) and node.name in {"read", "pixels"}):
            kept.append(node)
    names: dict[str, Any] = {"bus": chip, "time": SimpleNamespace(sleep_ms=lambda _: None)}
    exec(compile(ast.Module(kept, []), str(RECIPE), "exec"), names)  # noqa: S102 - our own recipe
    return names["read"]  # type: ignore[no-any-return]


def test_a_mean_of_rounded_pixels_meets_the_claim(attack: Attack, tmp_path: Path) -> None:
    """The exact delta of what a device with the shipped recipe sends, over pixels that jump and means that move.

    Claim: with `resolution` set to the step of one pixel, the mean of all pixels hides what the site file claims. True
    pixels may move in any way that moves their mean by no more than a hidden move does.
    """
    (tmp_path / "site.toml").write_text(SITE)
    site = load_site(tmp_path / "site.toml")
    cloak = site.cloak()
    plan = freeze(site, cloak)
    sensor = site.sensor_ids[0]
    made = provision(plan, sensor, tmp_path / "device", broker=BrokerAddress(), keys=None)
    store = Folder(str(made.folder))
    device, chip = Device(dict(read_config(store)), store), Chip()
    read = shipped_read(chip)

    def steps(truth: np.ndarray) -> int:
        """The value before its noise."""
        chip.truth = truth
        return device._steps(read())  # noqa: SLF001 - its message has the noise

    most = int(cloak.sensitivity / HARDWARE * FINE * PIXELS)  # by which the sum of the pixels may move
    rng = np.random.default_rng(2)
    worst = 0
    for high in range(0, PIXELS, attack.size(3, 1)):
        for moved in np.linspace(2 * PIXELS, most, attack.size(3, 40)).astype(int):
            # each pixel is just below the next step, `high` of them one step up; one crosses with each small move
            truth = 80 * FINE + FINE // 2 - 1 + FINE * (np.arange(PIXELS) < high)
            share = np.full(PIXELS, moved // PIXELS)
            for shift in (share, _gathered(moved), rng.permutation(_gathered(moved))):
                worst = max(worst, abs(steps(truth + shift) - steps(truth)))
                attack.tried += 1
    device.close()
    attack.compare(float(exact_delta(noise_table(plan.sensor(sensor).ratio), worst, EPSILON)), DELTA)


def _gathered(moved: int) -> np.ndarray:
    """All pixels move a little, and a few by whole steps, so that the hardware's errors and the move add up."""
    shift = np.ones(PIXELS, dtype=np.int64)
    shift[: (moved - PIXELS) // FINE] += FINE
    return shift
