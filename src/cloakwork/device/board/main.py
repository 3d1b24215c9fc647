"""The program that a board runs when it starts. Measuring is in measure.py; everything else is in lib/."""

import sys

HERE = __file__.rpartition("/")[0] or "."
sys.path.insert(0, HERE)
sys.path.insert(0, HERE + "/lib")

import measure  # noqa: E402 - found in this folder, which is on the path only now

from cloakwork.sensor.board import run  # noqa: E402

if __name__ == "__main__":
    run(HERE, measure.read)
