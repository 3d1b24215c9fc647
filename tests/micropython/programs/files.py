"""Change files as a device does, and print the progress."""

import os


def put(name: str, data: bytes, mode: str, *, flush: bool = True) -> None:
    file = open(name, mode)  # noqa: PTH123, SIM115 - MicroPython has no pathlib
    file.write(data)
    if flush:
        file.flush()
    file.close()
    print(name)  # noqa: T201


put("replaced", b"after, and longer", "wb")
put("longer", b" and more", "ab")
put("lost", b"never flushed", "wb", flush=False)
put("moving", b"moved", "wb")
os.rename("moving", "moved")  # noqa: PTH104
os.remove("removed")  # noqa: PTH107
print("done")  # noqa: T201
