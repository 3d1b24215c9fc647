"""Tells Home Assistant, through the broker, in which zones someone is.

Each zone is a binary sensor that Home Assistant finds by itself. Its states are not retained: a state that a broker
kept for hours would look like a new one.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import Any

import paho.mqtt.client as paho

from cloakwork.collect.broker import ANSWER, FIRST_RETRY, KEEP_ALIVE, LAST_RETRY, BrokerState
from cloakwork.collect.occupancy import Occupancy, occupancies
from cloakwork.collect.place import Watched
from cloakwork.collect.reach import client_for, context_of, why
from cloakwork.collect.records import Result
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress, expire_after, zone_discovery, zone_state, zone_topic
from cloakwork.recovery import PointSources

TICK = 0.25  # seconds after which a new state is sent at the latest
PATIENCE = 3.0  # seconds that stopping waits for the last word to arrive
USER = "-zones"  # after the name of the collector's user at the broker
log = logging.getLogger(__name__)


def for_zones(broker: BrokerAddress) -> BrokerAddress:
    """The same broker for the user who tells of zones: the collector's name with `-zones`, and the same password.

    A broker that ties sessions to users, as it should, would take two connections of one user for the same client, and
    end one whenever the other begins. And who reads everything need not be able to write anything.
    """
    return broker if broker.user is None else replace(broker, user=broker.user + USER)


class ZonesToHomeAssistant:
    """Publishes the zones of some sites from `start` to `stop`, while the broker is there; waits for it otherwise.

    Only the newest result of a site counts, and none that is so old that Home Assistant would have let go of it. A site
    whose estimator gives no odds has nothing to say here.

    Parameters
    ----------
    name
        Of this client at the broker; no two may have the same. `cloakwork/zones/<name>` says whether it is there.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        sites: Mapping[str, Watched],
        *,
        name: str = "cloakwork-zones",
        keep_alive: int = KEEP_ALIVE,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if not name or set(name) & set("/+#"):
            raise InputError(f"name={name!r}: give a name without /, + and #.", name=name)
        self._broker = broker
        self._context = context_of(broker)
        self._sites = {site: watched for site, watched in sites.items() if _gives_odds(watched)}
        self._name = name
        self._keep_alive = keep_alive
        self._clock = clock
        self._available = f"cloakwork/zones/{name}"
        self._announced = _announcements(self._sites, self._available)
        self._lock = Lock()
        self._newest: dict[str, Result] = {}
        self._waiting: set[str] = set()
        self._stopping = Event()
        self._thread: Thread | None = None
        self._granted, self._reason = False, ""
        self._state = BrokerState(False, clock(), "not started")

    @property
    def state(self) -> BrokerState:
        """How the connection is."""
        return self._state

    def start(self) -> None:
        """Connect in the background, again and again if need be."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = Thread(target=self._work, daemon=True, name="cloakwork zones")
            self._thread.start()

    def stop(self) -> None:
        """Say that there will be no more, and leave."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(2 * PATIENCE)  # it may be looking for a host: let it, it ends by itself
            self._thread = None
        self._say(False, "stopped")

    def result(self, result: Result) -> None:
        """A frame was recovered; returns at once."""
        if result.site not in self._sites or result.map is None or not self._current(result):
            return
        with self._lock:
            before = self._newest.get(result.site)
            if before is None or result.time >= before.time or not self._current(before):
                self._newest[result.site] = result
                self._waiting.add(result.site)

    def _current(self, result: Result) -> bool:
        """Whether it says how things are now; a clock that is ahead must not keep later results from being told."""
        schedule = self._sites[result.site].schedule
        age = self._clock() - result.time
        return -schedule.period_ms <= age <= 1000 * expire_after(schedule.window_slots, schedule.period_ms)

    def _work(self) -> None:
        wait = FIRST_RETRY
        while not self._stopping.is_set():
            self._granted, self._reason = False, "the broker ended the connection"
            client = client_for(self._broker, self._context, self._name, lasting=False)
            client.will_set(self._available, "offline", qos=1, retain=True)
            client.on_connect = self._answered
            try:
                client.connect(self._broker.host, self._broker.port, self._keep_alive)
                self._serve(client)
            except Exception as problem:  # whatever it is, the next attempt may do better
                self._reason = why(problem, self._broker)
            if (link := client.socket()) is not None:
                link.close()
            if self._state.connected:
                wait = FIRST_RETRY
            if not self._stopping.is_set():
                self._say(False, self._reason)
                self._stopping.wait(wait)
            wait = min(2 * wait, LAST_RETRY)

    def _answered(self, client: paho.Client, _: Any, __: Any, code: Any, ___: Any) -> None:
        if code.is_failure:
            user = self._broker.user or ""
            hint = f": let {user} in, with the same password" if user.endswith(USER) else ""
            self._reason = f"the broker refuses us ({code}){hint}"
            return
        for topic, payload in self._announced:
            client.publish(topic, payload, qos=1, retain=True)
        client.publish(self._available, "online", qos=1, retain=True)
        with self._lock:
            self._waiting = set(self._newest)
        self._granted = True

    def _serve(self, client: paho.Client) -> None:
        """Work until the connection ends."""
        end = time.monotonic() + ANSWER
        while not self._stopping.is_set():
            if client.loop(TICK) != paho.MQTT_ERR_SUCCESS:
                return
            if self._granted:
                self._say(True, "")
                self._tell(client)
            elif time.monotonic() > end:
                self._reason = f"{self._broker.host}:{self._broker.port} does not answer"
                return
        self._leave(client)

    def _tell(self, client: paho.Client) -> None:
        with self._lock:
            waiting, self._waiting = [self._newest[site] for site in sorted(self._waiting)], set()
        for result in waiting:
            for one in self._occupancies(result):
                state = zone_state(
                    occupied=one.occupied, probability=one.probability, expected=one.expected, time_ms=result.time
                )
                client.publish(zone_topic(result.site, one.zone.id), state)

    def _occupancies(self, result: Result) -> tuple[Occupancy, ...]:
        if not self._current(result):
            return ()
        try:
            return occupancies(self._sites[result.site].site, result) or ()
        except Exception:  # a strange result is no reason to tell nothing of the next
            log.exception("%s: what the frame of %d says of zones is not told", result.site, result.time)
            return ()

    def _leave(self, client: paho.Client) -> None:
        """Say that we go; a broker that we leave in peace does not say it for us."""
        if self._granted:
            said = client.publish(self._available, "offline", qos=1, retain=True)
            end = time.monotonic() + PATIENCE
            while not said.is_published() and time.monotonic() < end and client.loop(TICK) == paho.MQTT_ERR_SUCCESS:
                pass
        client.disconnect()

    def _say(self, connected: bool, reason: str) -> None:
        before = self._state
        if (before.connected, before.reason) == (connected, reason):
            return
        since = before.since if before.connected == connected else self._clock()
        self._state = BrokerState(connected, since, reason)
        if connected:
            log.info("zones are told to Home Assistant")
        elif not self._stopping.is_set():
            log.warning("zones are not told to Home Assistant: %s", reason)


def _gives_odds(watched: Watched) -> bool:
    if isinstance(watched.estimator.estimator, PointSources):
        return True
    log.warning(
        "%s: no zones for Home Assistant, because %s gives no odds that someone is there",
        watched.name,
        watched.estimator_name,
    )
    return False


def _announcements(sites: Mapping[str, Watched], available: str) -> list[tuple[str, bytes]]:
    """Discovery messages of all zones; refuses two zones that Home Assistant would take for one."""
    messages: dict[str, bytes] = {}
    for site, watched in sites.items():
        for zone in watched.site.zones:
            topic, payload = zone_discovery(site, zone, watched.schedule, available)
            if topic in messages:
                raise InputError(f'{site}: its zone "{zone.id}" and one of another site are both {topic}. Rename one.')
            messages[topic] = payload
    return list(messages.items())
