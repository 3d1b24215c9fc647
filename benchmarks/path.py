"""The path of a reading through the collector, from its message to the event of its result: the modules it meets.

`python -m benchmarks.path` prints how many modules of each folder a reading meets, in the order of the path; `-v` names
them. Compilation, and what happens once at the start, is left out. The forms after a frame's estimate are those that
carry its numbers.
"""

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import cloakwork
from cloakwork.collect import open_store
from cloakwork.collect.api.event_streams import result_event
from cloakwork.collect.intake import Intake
from cloakwork.collect.site_worker import SiteWorker
from cloakwork.collect.storage import Result
from cloakwork.readings import FrameRecovery
from cloakwork.sensor.wire import topic, write_reading
from tests.collect.small_sites import make, readings

PACKAGE = Path(cloakwork.__file__).parent
FORMS = (FrameRecovery, Result)


def modules_met(folder: Path) -> list[str]:
    """Modules of the package, in the order in which the readings of one frame meet them."""
    watched, met, on = make(folder), dict[str, None](), [False]

    def record(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if on[0] and event == "call" and name.startswith(str(PACKAGE)) and not frame.f_code.co_name.startswith("<"):
            met.setdefault(str(Path(name).relative_to(PACKAGE).with_suffix("")))

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        with open_store(str(folder / "store.db")) as store:
            intake = Intake(store, {watched.name: watched.budget_rules}, on_new=lambda _: None)
            worker = SiteWorker(watched, store, wait=0.0, clock=lambda: int(time.time() * 1000))
            intake.start()
            for number in range(3):
                on[0] = number == 2
                rows, done = readings(watched, number), list[int]()
                for row in rows:
                    message = topic(row.site, row.sensor, "reading"), write_reading(*row[2:5])
                    intake.offer(*message, lambda done=done: done.append(1))  # type: ignore[misc]
                while len(done) < len(rows):
                    time.sleep(0.01)
                for result in worker.turn(time.monotonic(), 1.0):
                    result_event(result)
            on[0] = False
            intake.stop()
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    return list(met)


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        met = modules_met(Path(folder))
    folders = Counter(name.partition("/")[0] for name in met)
    print(f"a reading meets {len(met)} modules: {', '.join(f'{count} of {name}' for name, count in folders.items())}")
    forms = [form.__name__ for form in FORMS]
    print(f"from its estimate to its event it has {len(forms)} forms: {', '.join(forms)}")
    if "-v" in sys.argv:
        print(*met, sep="\n")


if __name__ == "__main__":
    main()
