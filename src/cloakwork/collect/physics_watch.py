"""Watches the physics of a site: tests each followed frame, and keeps the faults that show."""

import hashlib
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.storage import FoundFault, PhysicsCheck, Store
from cloakwork.recovery import DrawnSources, Fault, FaultDetector, FaultKind, Observer

SAVED_EVERY = 30  # frames; a restarted collector repeats those since then
MAX_KEPT = 50  # faults, with those that have ended
CALIBRATE = "Compare the site with its plan; if it has changed for good, run `cloakwork calibrate` and plan again."
TEXTS = {
    FaultKind.DEAD: "Sensor {0} no longer responds to people. Check that it is powered and uncovered, or replace it.",
    FaultKind.WEAK: "Sensor {0} responds about half as strongly as planned. Check what covers it, and its unit.",
    FaultKind.STRONG: "Sensor {0} responds about twice as strongly as planned. Check its position, and its unit.",
    FaultKind.HIGH: "Sensor {0} reads too much. Check for a heat source near it, its baseline, or drift.",
    FaultKind.LOW: "Sensor {0} reads too little. Check for a draught near it, its baseline, or drift.",
    FaultKind.MOVED: "Sensor {0} reads as if it were at the position of {1}. Check whether it was moved or swapped.",
    FaultKind.QUIET: "Sensor {0} has less noise than planned: the claim may not hold. Provision it again at once.",
    FaultKind.NOISY: "Sensor {0} has more noise than planned. Check its wiring and its plan.",
    FaultKind.STRENGTH: "People warm all sensors more or less than planned. " + CALIBRATE,
    FaultKind.REACH: "Warmth spreads farther or less far than planned. " + CALIBRATE,
    FaultKind.DOOR: "Door {1} seems to be shut or walled up. " + CALIBRATE,
}
log = logging.getLogger(__name__)


def fault_text(fault: FoundFault) -> str:
    """Say what a fault means and what to do about it."""
    return TEXTS[FaultKind(fault.kind)].format(fault.sensor, fault.other)


class PhysicsWatch:
    """Tests the frames of one site in the order of time; for one thread.

    The state of the tests is in the store, so that a restart neither forgets a fault nor reports it again. Where
    another collector has stored a later state, or someone erased readings, the tests continue from the store.
    """

    def __init__(self, site: CollectedSite, store: Store, observer: Observer) -> None:
        self._site, self._store = site, store
        self._detector = FaultDetector(observer, period=site.schedule.period_ms / 1000)
        self._model = _fingerprint(site, self._detector.state)
        self._time, self._unsaved = 0, 0  # of the last frame tested, and how many since the last save
        self._saved: int | None = None  # the time of the stored state that ours continues
        self._faults: tuple[FoundFault, ...] = ()
        self._load()

    @property
    def sensors(self) -> frozenset[int]:
        """The sensors with a fault of their own, which the tracker is to ignore."""
        return self._detector.sensors

    def take(self, time: int, readings: FloatArray, draws: DrawnSources) -> None:
        """Test a frame, unless it was tested before: readings less the baselines, and the sources drawn from them."""
        if time <= self._time:
            return
        known = [fault for fault in self._faults if fault.ended is None]
        now = {
            fault.sensor: fault for fault in (self._found(one, time) for one in self._detector.step(readings, draws))
        }
        new = [fault for sensor, fault in now.items() if sensor not in {one.sensor for one in known}]
        self._time, self._unsaved = time, self._unsaved + 1
        self._faults = tuple([*(_updated(fault, now, time) for fault in self._faults), *new][-MAX_KEPT:])
        if [fault for fault in self._faults if fault.ended is None] != known or self._unsaved >= SAVED_EVERY:
            self._save(new)

    def _found(self, fault: Fault, time: int) -> FoundFault:
        ids = self._site.ids
        other = "" if fault.other is None else str(fault.other + 1)
        if fault.kind is FaultKind.MOVED and fault.other is not None:
            other = ids[fault.other]
        return FoundFault("" if fault.sensor is None else ids[fault.sensor], fault.kind.value, other, time)

    def _save(self, new: Sequence[FoundFault]) -> None:
        state = zlib.compress(self._detector.state.astype("<f8").tobytes(), 1)
        check = PhysicsCheck(self._site.name, self._model, self._time, state, self._faults)
        if not self._store.checks.save(check, after=self._saved):
            self._load()
            return
        self._saved, self._unsaved = self._time, 0
        for fault in new:
            log.warning("%s: %s", self._site.name, fault_text(fault))

    def _load(self) -> None:
        """Continue from the store; start again if it has nothing, or the state of another model."""
        check = self._store.checks.load(self._site.name)
        rows = self._site.site.physics.sensors + 1
        self._saved, self._unsaved = (None if check is None else check.time), 0
        self._time, self._faults = (0, ()) if check is None else (check.time, check.faults)
        if check is None or check.model != self._model:
            self._detector.restart()
        else:
            state = np.frombuffer(zlib.decompress(check.state), dtype="<f8")
            self._detector.state = state.reshape(rows, -1).astype(np.float64)


def _updated(fault: FoundFault, now: Mapping[str, FoundFault], time: int) -> FoundFault:
    """A fault under its present name, or with its end."""
    if fault.ended is not None:
        return fault
    return replace(now[fault.sensor], raised=fault.raised) if fault.sensor in now else replace(fault, ended=time)


def _fingerprint(site: CollectedSite, fresh: FloatArray) -> str:
    """Identifies the model and the tests: a state is good for these only."""
    parts = (site.site.physics.matrix, site.cloak.sigmas, site.site.baselines, np.array(fresh.shape))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]
