"""`cloakwork-sensor FOLDER [--check]`: run a provisioned folder, with its measure.py, by the standard library alone."""

import sys
from importlib import import_module

from cloakwork.sensor import board, check
from cloakwork.sensor.store import Folder

USAGE = "usage: cloakwork-sensor FOLDER [--check]"


def main() -> None:
    """Measure, cloak and send until interrupted; with --check, compare the hardware with the plan."""
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1 or words[0].startswith("-"):
        sys.exit(USAGE)
    [folder] = words
    store = Folder(folder)
    if not store.read("device.json") or not store.read("measure.py"):
        sys.exit(f"{folder}: device.json or measure.py missing. Give a folder that `cloakwork provision` wrote.")
    sys.path.insert(0, folder)
    (check if "--check" in sys.argv else board).run(folder, import_module("measure").read)


if __name__ == "__main__":
    main()
