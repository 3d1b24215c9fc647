"""Readings from an MQTT broker: acknowledged only when they are stored, so that the broker keeps the others."""

import logging
from collections.abc import Callable, Iterable

from cloakwork.collect.intake import Intake
from cloakwork.collect.storage import unix_ms
from cloakwork.errors import InputError
from cloakwork.mqtt import KEEP_ALIVE, BrokerAddress, BrokerState, MqttClient, MqttMessage

log = logging.getLogger(__name__)


def make_subscriber(
    broker: BrokerAddress,
    intake: Intake,
    *,
    client_id: str = "cloakwork-collector",
    group: str | None = None,
    sites: Iterable[str] | None = None,
    keep_alive: int = KEEP_ALIVE,
    clock: Callable[[], int] = unix_ms,
) -> MqttClient:
    """Return a client that brings what devices publish to an intake, once it is started.

    Its session outlives a connection: readings that are published while the collector is away wait at the broker, as
    long as the broker has room for them.

    Parameters
    ----------
    client_id
        Names the session at the broker. Keep it over restarts, and give each collector its own.
    group
        Collectors of one group share the readings among them; they must all watch the same sites.
    sites
        Subscribe to these only; None for all that the broker has.
    keep_alive
        Seconds of silence after which both sides check that the other is there.
    """
    if not client_id:
        raise InputError("the client id is empty, so the broker could not keep a session. Give a name.", client_id="")
    if group is not None and (not group or set(group) & set("/+#")):
        raise InputError(f"group={group!r}: give a name without /, + and #.", group=group)
    share = "" if group is None else f"$share/{group}/"

    def offer(message: MqttMessage) -> None:
        intake.offer(message.topic, message.payload, message.acknowledge)

    return MqttClient(
        broker,
        client_id=client_id,
        lasting=True,
        filters=[f"{share}cloakwork/v1/{site}/+/+" for site in (["+"] if sites is None else sites)],
        on_message=offer,
        has_room=lambda: intake.has_room,
        on_state=_log_state,
        keep_alive=keep_alive,
        clock=clock,
    )


def _log_state(state: BrokerState) -> None:
    if state.connected:
        log.info("connected to the broker")
    else:
        log.warning("no readings from the broker: %s", state.reason)
