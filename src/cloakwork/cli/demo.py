"""`cloakwork demo`: the whole line, on a furnished flat with three people in it."""

import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy import optimize

from cloakwork._checks import FloatArray
from cloakwork.cli.draw import cross, floor, save
from cloakwork.cli.output import counted, note, say, table
from cloakwork.measure import emd
from cloakwork.physics import FloorPlan, sources
from cloakwork.recovery import Recovery, Source, recover
from cloakwork.site import parse_site

PEOPLE = {"reading on the sofa": (2.1, 2.4), "asleep": (8.6, 6.6), "at the desk": (8.4, 1.6)}
FURNITURE = {
    "sofa": (1.2, 1.5, 1.8, 0.7),
    "table": (2.6, 5.2, 1.6, 1.0),
    "kitchen": (0.1, 7.3, 4.0, 0.6),
    "bed ": (7.2, 5.9, 1.8, 1.4),
    "bed": (8.1, 2.4, 1.8, 1.4),
    "desk": (7.6, 0.7, 1.6, 0.7),
}


def run_demo(out: Path, *, seed: int) -> None:
    """Cloak, recover, print a table, draw a picture, and say what it means."""
    began = time.perf_counter()
    site = parse_site(files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8"))
    flat = site.physics
    if not isinstance(flat, FloorPlan):
        raise TypeError("the example site is a floor plan")
    note("planning the noise ...")
    cloak = site.cloak()
    truth = sources(flat, list(PEOPLE.values()))
    clean = flat.apply(truth)
    note("cloaking and recovering (the first run compiles the solver, which takes some seconds) ...")
    noisy = cloak.simulate(clean + site.baselines, rng=np.random.default_rng(seed)) - site.baselines
    found = recover(noisy, cloak)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "demo.png"
    _draw(picture, flat, noisy, found)
    _report(flat, cloak.sigma, truth, found)
    say(
        f"What it means: each of {flat.sensors} sensors added noise of {cloak.sigma:.2f} degrees to its own reading "
        f"before sending it. Someone who sees all of them cannot tell well whether a person moved by "
        f"{cloak.alpha:g} m: "
        f"any event is at most e^{cloak.epsilon:g} times likelier either way, plus {cloak.delta:g}. They still learn "
        "roughly which part of the flat is occupied. Presence, number of people and which side of a wall they are on "
        "are not hidden."
    )
    say(
        f"Settings: 1 m reach, 0.5 m footprint, alpha {cloak.alpha:g} m, epsilon {cloak.epsilon:g}, "
        "one reading an hour; `cloakwork init` writes them to a file."
    )
    note(
        f"drew {picture} in {time.perf_counter() - began:.1f} s; now try: cloakwork init, then cloakwork plan site.toml"
    )


def _report(flat: FloorPlan, sigma: float, truth: FloatArray, found: Recovery) -> None:
    rows = []
    apart = np.array([[_apart(source, at) for source in found.sources] for at in PEOPLE.values()])
    people, chosen = optimize.linear_sum_assignment(apart.reshape(len(PEOPLE), -1))
    matched = dict(zip(people.tolist(), chosen.tolist(), strict=True))
    for number, (who, at) in enumerate(PEOPLE.items()):
        if number not in matched:
            rows.append((who, f"{at[0]:.1f}, {at[1]:.1f}", "not found", "", "", ""))
            continue
        source = found.sources[matched[number]]
        where = ", ".join(f"{value:.1f}" for value in flat.space.places[source.place])
        off = float(apart[number, matched[number]])
        row = (where, f"{off:.2f} m", f"{source.radius:.2f} m", f"{source.weight:.2f}")
        rows.append((who, f"{at[0]:.1f}, {at[1]:.1f}", *row))
    columns = ("person", "is at", "found at", "off by", "within", "weight")
    table("Three people in a flat", columns, rows)
    say(f"{counted(len(found.sources), 'source')} recovered; the map is proved best of its kind to {found.gap:.0e}.")
    if found.map.sum() > 0:
        far = emd(found.map, truth, flat.space)
        say(f"To turn the recovered map into the truth, warmth must be carried {far:.2f} m on average (scaled to 1).")
    say(f"One person warms a sensor straight above by {flat.matrix.max():.2f} degrees; the noise is {sigma:.2f}.")


def _apart(source: Source, at: tuple[float, float]) -> float:
    return float(np.hypot(*(np.asarray(source.at) - np.asarray(at))))


def _draw(path: Path, flat: FloorPlan, noisy: FloatArray, found: Recovery) -> None:
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    floor(left, flat.rooms, None)
    left.set_title("The truth: three people at home")
    floor(middle, flat.rooms, None)
    middle.set_title("What the sensors send: warmth plus noise")
    size = float(np.abs(noisy).max())
    x, y = flat.sensor_positions.T
    dots = middle.scatter(
        x, y, c=noisy, cmap="coolwarm", vmin=-size, vmax=size, s=90, edgecolors="#555555", linewidths=0.5
    )
    figure.colorbar(dots, ax=middle, label="degrees", shrink=0.8)
    mesh = floor(right, flat.rooms, _spread(found, flat.places))
    right.set_title("What an analyst learns: their vicinities")
    figure.colorbar(mesh, ax=right, label="weight that may be here", shrink=0.8)
    for source in found.sources:
        cross(right, flat.space.places[source.place].tolist())
    for axes in (left, right):
        _furnish(axes)
        for number, at in enumerate(PEOPLE.values()):
            axes.plot(*at, "o", color="#1f5fa8", markersize=9, label="person" if number == 0 else None)
    _legend(left)
    right.plot([], [], "x", color="#b3261e", markeredgewidth=2, label="found; its vicinity is shaded")
    _legend(right)
    save(figure, path)


def _legend(axes: Any) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)


def _spread(found: Recovery, places: int) -> FloatArray:
    """For each cell the weight of the sources that could be there without the readings showing it."""
    total = np.zeros(places)
    for source in found.sources:
        total[source.vicinity] += source.weight
    return total


def _furnish(axes: Any) -> None:
    for name, (x, y, width, height) in FURNITURE.items():
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="#999999", linewidth=1))
        axes.text(x + width / 2, y + height / 2, name.strip(), ha="center", va="center", fontsize=7, color="#777777")
