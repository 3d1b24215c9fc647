"""Walks that cannot calibrate anything are refused, with what to do."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cloakwork.errors import InputError
from cloakwork.fitting import fit_walk, read_walk
from cloakwork.site import parse_site
from tests.fitting.walks import SPOTS, STATED, stated, true_plan, true_readings, write_walk


def read(
    folder: Path,
    *,
    spots: list[tuple[float, float] | None] | None = None,
    text: str = STATED,
    step: float = 0.0,
    noise: float = 0.05,
    edit: Callable[[Path, Path], None] = lambda _, __: None,
) -> None:
    site, where = parse_site(text), spots if spots is not None else [*SPOTS, None]
    readings = true_readings(true_plan(site), np.ones(12), np.full(12, 20.0), where)
    walk, raw = write_walk(folder, site, readings, where, step=step, noise=noise)
    edit(walk, raw)
    read_walk(site, walk, raw)


def third_sensor(change: Callable[[float], float]) -> Callable[[Path, Path], None]:
    def edit(_: Path, raw: Path) -> None:
        head, *lines = raw.read_text(encoding="utf-8").splitlines()
        cells = [line.split(",") for line in lines]
        rows = [f"{t},{s},{change(float(v)) if s == 's03' else v}" for t, s, v in cells]
        raw.write_text("\n".join([head, *rows]), encoding="utf-8")

    return edit


def rename(_: Path, raw: Path) -> None:
    raw.write_text(raw.read_text(encoding="utf-8").replace(",s03,", ",hall,"), encoding="utf-8")


def without_a_sensor(_: Path, raw: Path) -> None:
    lines = raw.read_text(encoding="utf-8").splitlines()
    raw.write_text("\n".join(line for line in lines if ",s03," not in line), encoding="utf-8")


def through_a_wall(walk: Path, _: Path) -> None:
    walk.write_text(walk.read_text(encoding="utf-8").replace(",0.6,0.7", ",60.0,0.7"), encoding="utf-8")


@pytest.mark.parametrize(
    ("case", "key"),
    [
        ({"spots": [(1.0, 1.0), (1.1, 1.0), (1.0, 1.2), None]}, "spots"),
        ({"edit": rename}, "sensors"),
        ({"edit": without_a_sensor}, "sensors"),
        ({"edit": through_a_wall}, "at"),
        ({"text": STATED + "resolution = 0.0625\n", "step": 0.25}, "resolution"),
        (
            {
                "text": STATED + "resolution = 0.0625\n",
                "step": 0.0625,
                "edit": third_sensor(lambda v: round(4 * v) / 4),
            },
            "resolution",
        ),
        ({"text": STATED + "resolution = 0.0625\nnoise_floor = 0.07\n", "step": 0.0625}, "noise_floor"),
        ({"edit": third_sensor(lambda _: 85.0)}, "sensors"),
    ],
    ids=[
        "one spot",
        "unknown",
        "missing",
        "off the floor",
        "step",
        "step of one sensor",
        "noise floor",
        "stuck",
    ],
)
def test_a_walk_that_cannot_be_used_is_refused(case: dict[str, object], key: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        read(tmp_path, **case)  # type: ignore[arg-type]
    assert key in refusal.value.values
    lines = (tmp_path / "raw.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert not any(line.split(",")[2] in str(refusal.value) for line in lines), "a message shows a true reading"


def test_readings_that_do_not_rise_are_refused(tmp_path: Path) -> None:
    site = stated()
    readings = 40 - true_readings(true_plan(site), np.ones(12), np.full(12, 20.0), [*SPOTS, None])
    walk = read_walk(site, *write_walk(tmp_path, site, readings, [*SPOTS, None]))
    with pytest.raises(InputError, match="warmer"):
        fit_walk(site, walk)


def test_a_walk_that_leaves_the_reach_open_has_an_infinite_interval_that_no_tolerance_covers(tmp_path: Path) -> None:
    site = stated()
    spots: list[tuple[float, float] | None] = [(0.6, 2.1), (1.2, 2.1), (0.6, 2.1), (1.2, 2.1), None]
    readings = true_readings(true_plan(site), np.ones(12), np.full(12, 20.0), spots)
    fit = fit_walk(site, read_walk(site, *write_walk(tmp_path, site, readings, spots, noise=3.0, reads=3, seed=2)))
    assert fit.reach.max == np.inf
    assert not fit.reach.known
    with pytest.raises(InputError) as refusal:
        _ = fit.tolerance
    assert "reach" in refusal.value.values
