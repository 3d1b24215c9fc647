"""`cloakwork audit mqtt` of a binary sensor."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from cloakwork.auditing import DeviceClaim
from cloakwork.cli.audit_mqtt import DeviceResult
from cloakwork.cli.audit_options import AuditOptions, audited
from cloakwork.privacy import noise_of_frames, simulated_words
from cloakwork.site import FrozenPlan
from tests.cli.conftest import Run
from tests.device.test_bits import SITE


@pytest.mark.parametrize(("shown", "code"), [(0, 0), (3, 3)])
def test_a_binary_sensor_is_audited_by_its_plan(
    shown: int, code: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that never flips one report in `shown` breaks the claim."""

    def recorded(
        plan: FrozenPlan, _: object, claim: DeviceClaim, __: object, ___: object, options: AuditOptions, *____: object
    ) -> DeviceResult:
        flips = noise_of_frames([plan.noise("door").table] * 2, 5000, simulated_words(np.random.default_rng(2)))
        if shown:
            flips[::shown] = 0
        first, second = (flips + np.array([0, 1])).T % 2
        parts = {0: iter(first), 1: iter(second)}
        source = lambda database, size, _: np.array(list(islice(parts[database], size)))  # noqa: E731
        return DeviceResult(audited(source, claim.epsilon, claim.delta, options, 5000), (first, second), 0)

    monkeypatch.setattr("cloakwork.cli.audit_mqtt._record", recorded)
    site = tmp_path / "hall.toml"
    site.write_text(SITE.replace("epsilon = 2.0\n", "epsilon = 60.0\n"), encoding="utf-8")
    planned = run("plan", "--no-simulation", site, "--out", tmp_path / "hall.plan.json", "--json").values
    spans = planned["over_time"]
    assert [span["time"] for span in spans][-3:] == ["1 day", "1 week", "1 year"]
    words = ("audit", "mqtt", site, "--id", "door", "--broker", "mqtt://localhost:1", "--between", "true", "--json")
    done = run(*words, "--confidence", 0.999)
    assert done.code == code, done.said
    assert "twice that epsilon" in done.err
    assert "the opposite" in " ".join(done.values["claimed"])
    assert run(*words, "--shift", 1).code == 2
