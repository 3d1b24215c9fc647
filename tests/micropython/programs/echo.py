"""Send bytes that are hard to transport, and count how many come back unchanged."""

import bridge  # type: ignore[import-not-found]

args = bridge.args
sent = bytes(range(256)) * args["times"]
back = bytearray()
bridge.connect(args["host"], args["port"])
started = False


def step() -> "int | None":
    global started  # noqa: PLW0603 - the program is its own object
    if bridge.is_open() and not started:
        bridge.write(sent)
        started = True
    back.extend(bridge.read())
    if len(back) < len(sent) and bridge.state() != "closed":
        return 0
    print(len(back), bytes(back) == sent)  # noqa: T201
    return None
