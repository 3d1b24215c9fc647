"""The command line: parse, call, print."""

import os

# Several threads for matrices as small as ours wait for each other: on a busy machine they take up to a hundred times
# as long. It has to be said before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from cloakwork.cli.app import main

__all__ = ["main"]
