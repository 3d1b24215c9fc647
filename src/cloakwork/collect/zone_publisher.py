"""Publishes the occupancy of zones and the alarms of sites to Home Assistant, through the broker.

Home Assistant discovers each zone and each alarm as a binary sensor. States are not retained: one that a broker kept
for hours would look like a new one.
"""

import json
import logging
import math
import re
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from cloakwork.collect.collected_site import OFFLINE, CollectedBits, CollectedSite
from cloakwork.collect.message_problems import CANNOT_MEASURE, CLAIM_BREAKING, Reason
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.storage import Result, Store, unix_ms
from cloakwork.errors import InputError, StoreError
from cloakwork.mqtt import (
    ALARMS,
    AWAY,
    CLAIM,
    PEOPLE,
    PHYSICS,
    BrokerAddress,
    BrokerState,
    Connection,
    MqttClient,
    MqttSession,
    alarm_discovery,
    alarm_state,
    expire_after,
    people_discovery,
    zone_discovery,
    zone_state,
    zone_topic,
)
from cloakwork.recovery import PointSources

USER_SUFFIX = "-zones"  # after the name of the collector's user at the broker
RECENT_MS = 3_600_000
AWAY_MS = 900_000  # before a device that is offline is an alarm: it may only start again
ALARMS_S = 30.0  # between two looks at the alarms: without sensors there are no results to bring them
log = logging.getLogger(__name__)


def alarm_reasons(store: Store, site: CollectedSite | CollectedBits, now: int) -> dict[str, list[str]]:
    """The reasons for each alarm of a site that is on now; a broken claim stays one for a window, or an hour."""
    since = now - max(RECENT_MS, site.budget_rules.window_ms)
    problems = [problem for problem in store.problems.counts(site.name) if problem.last >= since]
    return {
        PHYSICS: [fault_text(fault) for fault in store.checks.faults(site.name) if fault.ended is None],
        CLAIM: [f"{one.sensor}: {one.reason}" for one in problems if one.reason in (*CLAIM_BREAKING, Reason.ALARM)],
        AWAY: [
            f"{one.sensor}: {one.state}"
            for one in store.reports.latest(site.name)
            if one.state in CANNOT_MEASURE or (one.state == OFFLINE and one.received <= now - AWAY_MS)
        ],
    }


class ZonePublisher:
    """Publishes the zones of some sites from `start` to `stop`, whenever the broker can be reached.

    Only the newest result of a site counts, and only until Home Assistant would let it expire. Of a site whose
    estimator gives no probabilities, there are alarms only.

    `name` is the client id at the broker; no two clients may have the same. `cloakwork/zones/<name>` says whether it is
    online. `page_url` is the address of the page, for a link in Home Assistant.

    It signs in as the collector's user with `-zones`, by the same password. A broker that ties sessions to users, as it
    should, would take two connections of one user for the same client and end one whenever the other begins. Besides,
    the user that reads everything need not be able to write anything.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        sites: Mapping[str, CollectedSite | CollectedBits],
        store: Store,
        *,
        name: str = "cloakwork-zones",
        page_url: str | None = None,
        clock: Callable[[], int] = unix_ms,
    ) -> None:
        if not name or set(name) & set("/+#"):
            raise InputError(f"name={name!r}: give a name without /, + and #.", name=name)
        if page_url is not None and not re.fullmatch(r"(https?|homeassistant)://[^\s/]\S*", page_url):
            raise InputError(  # Home Assistant would refuse every entity
                f"page address {page_url!r}: give https://collector.example or the like.", page_url=page_url
            )
        self._sites, self._store, self._clock = sites, store, clock
        self._zoned = {name for name, site in sites.items() if _gives_probabilities(site)}
        availability = f"cloakwork/zones/{name}"
        self._discovery = _discovery_messages(sites, self._zoned, availability, page_url)
        self._lock = Lock()
        self._newest: dict[str, Result] = {}
        self._waiting: set[str] = set()
        self._looked = -math.inf
        session = MqttSession(
            client_id=name,
            availability=availability,
            on_ready=self._announce,
            on_turn=self._publish,
            on_state=_log_state,
        )
        own = broker if broker.user is None else replace(broker, user=broker.user + USER_SUFFIX)
        self._client = MqttClient(own, session, clock=clock)
        self.start, self.stop = self._client.start, self._client.stop

    @property
    def state(self) -> BrokerState:
        return self._client.state

    def result(self, result: Result) -> None:
        """Publish the zones of a recovered frame soon; returns at once."""
        if result.site not in self._zoned or result.settled or result.zones is None or not self._is_current(result):
            return
        with self._lock:
            before = self._newest.get(result.site)
            if before is None or result.time >= before.time or not self._is_current(before):
                self._newest[result.site] = result
                self._waiting.add(result.site)
        self._client.wake()

    def _is_current(self, result: Result) -> bool:
        """Whether a result is neither expired nor from the future; a fast clock must not hide later results."""
        schedule = self._sites[result.site].schedule
        age = self._clock() - result.time
        return -schedule.period_ms <= age <= 1000 * expire_after(schedule.window_slots, schedule.period_ms)

    def _announce(self, connection: Connection) -> None:
        for topic, payload in self._discovery.items():
            connection.publish(topic, payload, retain=True)
        with self._lock:
            self._waiting = set(self._newest)
        self._looked = -math.inf

    def _publish(self, connection: Connection) -> None:
        with self._lock:
            waiting, self._waiting = [self._newest[site] for site in sorted(self._waiting)], set()
        if waiting or time.monotonic() - self._looked > ALARMS_S:
            self._looked = time.monotonic()
            self._publish_alarms(connection)
        for result in filter(self._is_current, waiting):
            if result.counts:
                likely = max(range(len(result.counts)), key=result.counts.__getitem__)
                people = {"count": likely, "probability": round(result.counts[likely], 3)}
                connection.publish(zone_topic(result.site, PEOPLE), json.dumps(people).encode())
            for zone in result.zones or ():
                state = zone_state(
                    occupied=zone.occupied, probability=zone.probability, expected=zone.expected, time_ms=result.time
                )
                connection.publish(zone_topic(result.site, zone.id), state)

    def _publish_alarms(self, connection: Connection) -> None:
        for name, site in self._sites.items():
            with suppress(StoreError):  # it is looked at again soon
                for alarm, reasons in alarm_reasons(self._store, site, self._clock()).items():
                    connection.publish(zone_topic(name, alarm), alarm_state(reasons))


def _log_state(state: BrokerState) -> None:
    if state.connected:
        log.info("zones are published to Home Assistant")
    else:
        log.warning("zones are not published to Home Assistant: %s", state.reason)


def _gives_probabilities(watched: CollectedSite | CollectedBits) -> bool:
    if isinstance(watched, CollectedBits) or isinstance(watched.estimator.estimator, PointSources):
        return True
    log.warning(
        "%s: no zones for Home Assistant, because %s gives no probabilities", watched.name, watched.estimator_name
    )
    return False


def _discovery_messages(
    sites: Mapping[str, CollectedSite | CollectedBits], zoned: Set[str], availability: str, page_url: str | None
) -> dict[str, bytes]:
    """Return payloads by topic; refuses two zones that Home Assistant would take for one."""
    messages = dict(alarm_discovery(site, alarm, availability, page_url=page_url) for site in sites for alarm in ALARMS)
    for name in sorted(zoned):
        site = sites[name]
        if isinstance(site, CollectedSite):  # bits do not count people
            messages |= [people_discovery(name, site.schedule, availability)]
        announced = [
            (zone, *message)
            for zone in site.site.zones
            for message in zone_discovery(name, zone, site.schedule, availability)
        ]
        for zone, topic, payload in announced:
            if topic in messages:
                raise InputError(
                    f'{name}: its zone "{zone.id}" and one of another site are both {topic}. Rename one.',
                    site=name,
                    zone=zone.id,
                    topic=topic,
                )
            messages[topic] = payload
    return messages
