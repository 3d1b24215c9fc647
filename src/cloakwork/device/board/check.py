"""Check this device beside it, before it starts: `python3 check.py`, or on a board `mpremote exec "import check"`."""

import sys

HERE = __file__.rpartition("/")[0] or "."
sys.path.insert(0, HERE)
sys.path.insert(0, HERE + "/lib")

import measure  # noqa: E402 - found in this folder, which is on the path only now

from cloakwork.sensor.check import run  # noqa: E402

run(HERE, measure.read)
