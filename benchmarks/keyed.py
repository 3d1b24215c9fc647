"""Speed of keyed noise in bulk and on a device, against loops over two well-known HMACs."""

import hmac
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC
from rich.table import Table

import cloakwork
from cloakwork.device.c_plan import plan_header
from cloakwork.privacy import noise_table
from cloakwork.sensor import keystream, look_up
from tests.devices import config
from tests.keystreams import keyed_noise, keyed_words

GOAL_BULK = 200_000.0
GOAL_DEVICE = 20_000.0
KEY, SITE, SENSOR = bytes(range(32)), "flat", "s07"
DRAWS, SINGLE_DRAWS = 200_000, 5_000
CORE_HZ = 240e6
NOISE = noise_table(3_000.0)  # two levels: two words and two look-ups a draw


def run() -> tuple[Table, bool]:
    """The table, and whether both goals are met."""
    assert len(NOISE.levels) == 2
    seqs = np.arange(DRAWS)
    expected = [
        [int(high) << 64 | int(low) for high, low in row] for row in keyed_words(KEY, SITE, SENSOR, seqs[:64], 2)
    ]
    for rival in (_standard_library, _cryptography, keystream.words):
        assert [rival(_stream(), seq, 2) for seq in range(64)] == expected
    bulk = _rate(lambda: keyed_noise(NOISE, KEY, SITE, SENSOR, seqs), DRAWS)
    device = _rate(lambda: _draws(keystream.words), SINGLE_DRAWS)
    standard = _rate(lambda: _draws(_standard_library), SINGLE_DRAWS)
    theirs = _rate(lambda: _draws(_cryptography), SINGLE_DRAWS)

    table = Table(title="Keyed draws of noise per second: words and look-ups, two levels")
    for name in ("who", "rate", "note"):
        table.add_column(name, justify="right" if name == "rate" else "left")
    note = f"{_verdict(bulk, GOAL_BULK)}; {bulk / max(standard, theirs):,.0f}x the faster loop"
    table.add_row("keyed_noise", f"{bulk:,.0f}", note)
    table.add_row("device, on CPython", f"{device:,.0f}", _verdict(device, GOAL_DEVICE))
    board = _counted()
    if board:
        estimate = CORE_HZ / board
        note = f"{_verdict(estimate, GOAL_DEVICE)}; an estimate: {board:,.0f} instructions counted, one a cycle"
        table.add_row("device in C, 240 MHz", f"{estimate:,.0f}", note)
    else:
        table.add_row("device in C, 240 MHz", "-", "needs gcc and valgrind")
    table.add_row("the same with the standard library's hmac", f"{standard:,.0f}", "not on MicroPython")
    table.add_row("the same with cryptography's HMAC", f"{theirs:,.0f}", "not on MicroPython")
    return table, bulk >= GOAL_BULK and device >= GOAL_DEVICE and (not board or CORE_HZ / board >= GOAL_DEVICE)


PROGRAM = """
#include "cloakwork.c"
#include "plan.h"
#include <stdlib.h>
int main(int count, char **arguments) {
    static cw_device device;
    int64_t noise, sum = 0;
    device.plan = &CW_PLAN;
    for (uint32_t k = 0; count > 1 && k < (uint32_t)atoi(arguments[1]); k++) {
        use_epoch(&device, k / EPOCH);
        sum += draw(&device, k, &noise) + noise;
    }
    return sum == 1;
}
"""


def _counted() -> float | None:
    """Instructions of one draw in C on this processor, with its share of an epoch's keys; None without the tools."""
    if shutil.which("gcc") is None or shutil.which("valgrind") is None:
        return None
    counts = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.h").write_bytes(plan_header(config(ratio=3_000.0), NOISE.cuts))
        (folder / "draws.c").write_text(PROGRAM, encoding="utf-8")
        source = Path(cloakwork.__file__).parent / "device" / "c"
        line = ["gcc", "-std=c99", "-O2", f"-I{source}", "draws.c", "-o", "draws"]
        subprocess.run(line, cwd=folder, check=True)
        for draws in (640, 1280):
            counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "./draws", str(draws)]
            said = subprocess.run(counting, cwd=folder, check=False, capture_output=True, text=True).stderr
            counts.append(int(re.findall(r"Collected : (\d+)", said)[0]))
    return (counts[1] - counts[0]) / 640


def _stream() -> bytes:
    return keystream.stream_key(KEY, SITE, SENSOR, 0, 0)


def _draws(words: Callable[[bytes, int, int], list[int]]) -> None:
    """Draw as a device does, with its own or another source of words, including the keys of the epochs."""
    key = KEY
    (coarse, first), (_, second) = ((level.factor, level.cuts) for level in NOISE.levels)
    for seq in range(SINGLE_DRAWS):
        if seq % keystream.EPOCH == 0:
            key = keystream.ratchet(key) if seq else key
            stream = keystream.stream_key(key, SITE, SENSOR, 0, seq // keystream.EPOCH)
        high, low = words(stream, seq, 2)
        _ = coarse * look_up(first, high) + look_up(second, low)


def _standard_library(stream: bytes, seq: int, count: int) -> list[int]:
    blocks = b"".join(hmac.digest(stream, seq.to_bytes(8, "big") + bytes([b]), "sha256") for b in range(-(-count // 2)))
    return [int.from_bytes(blocks[16 * k : 16 * k + 16], "big") for k in range(count)]


def _cryptography(stream: bytes, seq: int, count: int) -> list[int]:
    blocks = b""
    for b in range(-(-count // 2)):
        mac = _ready(stream).copy()
        mac.update(seq.to_bytes(8, "big") + bytes([b]))
        blocks += mac.finalize()
    return [int.from_bytes(blocks[16 * k : 16 * k + 16], "big") for k in range(count)]


@lru_cache(maxsize=1)
def _ready(stream: bytes) -> HMAC:
    return HMAC(stream, hashes.SHA256())


def _verdict(rate: float, goal: float) -> str:
    return f"goal {goal:,.0f}: {'met' if rate >= goal else 'MISSED'}"


def _rate(work: Callable[[], object], draws: int) -> float:
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return draws / best
