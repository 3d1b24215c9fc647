"""The same noise on CPython, on MicroPython and in bulk on the host, bit for bit."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cloakwork.privacy import noise_table
from cloakwork.sensor.keystream import sequence
from tests import micropython
from tests.devices import GENERATION, KEY, SENSOR, SITE, make_folder
from tests.keystreams import keyed_noise

PROGRAM = micropython.PROGRAMS / "draws.py"
COUNT = 1_500
SEQS = np.array([sequence(GENERATION, counter) for counter in range(COUNT)])


@pytest.mark.parametrize("ratio", [2.5, 3017.25, 200_000.0])
def test_draws_are_the_same_on_cpython_micropython_and_in_bulk(tmp_path: Path, ratio: float) -> None:
    make_folder(tmp_path, ratio=ratio)
    micropython.copy_sensor(tmp_path)
    drawn = keyed_noise(noise_table(ratio), KEY, SITE, SENSOR, SEQS)
    host = hashlib.sha256(b"".join(b"%d\n" % value for value in drawn.tolist())).hexdigest()
    done = subprocess.run([sys.executable, str(PROGRAM), str(tmp_path)], check=True, capture_output=True, text=True)
    ours = json.loads(done.stdout)
    board = micropython.run(PROGRAM, folder=tmp_path, timeout=600)
    assert board.returncode == 0, board.stdout + board.stderr
    theirs = json.loads(board.stdout)
    assert ours["digest"] == theirs["digest"] == host
    # the same counted steps for every draw, and on both interpreters
    assert len(ours["steps"]) == 1
    assert ours["steps"] == theirs["steps"]
    assert 0 < theirs["memory"] < 4096


@pytest.mark.parametrize("ratio", [2.5, 300.0])
def test_keyed_noise_has_the_exact_law_and_a_scale_20_percent_off_fails(ratio: float) -> None:
    seqs = np.array([sequence(GENERATION, counter) for counter in range(40_000)])
    drawn = keyed_noise(noise_table(ratio), KEY, SITE, SENSOR, seqs)
    edges = np.arange(-3, 3.01, 0.25) * ratio

    def p_value(scale: float) -> float:
        # whole numbers k stand for the cell from k - 1/2 to k + 1/2
        cut = np.floor(edges) + 0.5
        chances = np.diff(stats.norm.cdf(np.concatenate(([-np.inf], cut, [np.inf])), scale=scale * ratio))
        counts = np.diff(np.concatenate(([0], np.searchsorted(np.sort(drawn), cut), [len(drawn)])))
        kept = chances > 1e-4
        return float(stats.chisquare(counts[kept], chances[kept] / chances[kept].sum() * counts[kept].sum()).pvalue)

    assert p_value(1.0) > 1e-3
    assert p_value(0.8) < 1e-12
    assert p_value(1.2) < 1e-12
