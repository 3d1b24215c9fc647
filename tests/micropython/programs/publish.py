"""Publish `count` numbered messages with the device's own client, each after the acknowledgement of the one before."""

import time

import bridge  # type: ignore[import-not-found]

from cloakwork.sensor.mqtt import Mqtt

args = bridge.args
link = Mqtt(args["user"], user=args["user"], password=args["password"], will=(args["topic"], b"gone"))
link.connect()
bridge.connect(args["host"], args["port"], True, args["ca"])
sent = 0


def step() -> "int | None":
    global sent  # noqa: PLW0603 - the program is its own object
    if bridge.state() == "closed":
        print("closed", bridge.reason())  # noqa: T201
        return None
    if not bridge.is_open():
        return 5
    link.feed(bridge.read())
    link.tick(time.ticks_ms())  # type: ignore[attr-defined]
    for event in link.events():
        print(*event)  # noqa: T201
        if event[0] in ("refused", "dead"):
            return None
        if sent == args["count"]:
            link.disconnect()
            bridge.write(link.take())
            return None
        link.publish(args["topic"], b"\x00\xff %d" % sent)
        sent += 1
    bridge.write(link.take())
    return 1
