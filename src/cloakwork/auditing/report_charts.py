"""Pictures of a report, as SVG that follows the page's colours."""

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.auditing.result import Audit, Verdict

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 16, 44
_ROW = 30
_LABEL, _NUMBER = 250, 70


def bars(title: str, rows: Sequence[tuple[str, float]], limit: tuple[str, float]) -> str:
    """Frequency of an event with each input, and the most that the claim allows."""
    largest = max([share for _, share in rows] + [limit[1], 1e-12])
    room = _WIDTH - _LABEL - _NUMBER
    drawn = []
    for number, (name, share) in enumerate([*rows, limit]):
        label = name if len(name) <= 38 else f"{name[:37]}…"
        y, length = 10 + number * _ROW, max(room * share / largest, 1.5)
        kind = "limit" if number == len(rows) else f"input{number}"
        drawn.append(
            f'<text x="{_LABEL - 10}" y="{y + 14}" class="label">{escape(label)}</text>'
            f'<rect x="{_LABEL}" y="{y}" width="{length:.1f}" height="18" rx="2" class="{kind}"/>'
            f'<text x="{_LABEL + length + 8:.1f}" y="{y + 14}">{100 * share:.3g} %</text>'
        )
    height = 14 + _ROW * (len(rows) + 1)
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg>'
        f"<figcaption>{escape(title)}.</figcaption></figure>"
    )


def profile_chart(audit: Audit) -> str:
    """The privacy profile with its band and the claim; empty if withheld or without reports."""
    if audit.verdict is Verdict.WITHHELD or not audit.profile.reports:
        return ""
    profile = audit.profile
    right = float(profile.epsilons[-1]) or 1.0
    top = _nice(max(float(profile.estimate.max()), float(profile.lower.max()), audit.delta, 1e-9) * 1.3)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / right

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(value / top, 1.0))

    def path(epsilons: FloatArray, deltas: FloatArray) -> str:
        return " ".join(f"{x(e):.1f},{y(d):.1f}" for e, d in zip(epsilons, deltas, strict=True))

    band = path(
        np.concatenate([profile.epsilons, profile.epsilons[::-1]]), np.concatenate([profile.upper, profile.lower[::-1]])
    )
    parts = [
        *_axes(right, top, x, y),
        f'<polygon points="{band}" class="band"/>',
        f'<polyline points="{path(profile.epsilons, profile.estimate)}" class="line"/>',
        _cross(x(audit.epsilon), y(audit.delta)),
    ]
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Privacy profile">{"".join(parts)}</svg>'


def _axes(right: float, top: float, x: Callable[[float], float], y: Callable[[float], float]) -> list[str]:
    floor = _HEIGHT - _BOTTOM
    parts = [
        f'<text x="{x(value):.1f}" y="{floor + 18}" class="middle">{value:.3g}</text>'
        for value in np.linspace(0.0, right, 5)
    ]
    parts += [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
        f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" class="label">{value:.2g}</text>'
        for value in np.linspace(0.0, top, 5)
    ]
    parts.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" class="middle">epsilon</text>')
    parts.append(f'<text x="14" y="{floor / 2}" class="middle" transform="rotate(-90 14 {floor / 2})">delta</text>')
    return parts


def _cross(x: float, y: float) -> str:
    lines = ((x - 6, y - 6, x + 6, y + 6), (x - 6, y + 6, x + 6, y - 6))
    drawn = "".join(
        f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" class="claim"/>' for a, b, c, d in lines
    )
    return f'{drawn}<text x="{x + 10:.1f}" y="{y - 8:.1f}" class="claim-label">claim</text>'


def _nice(value: float) -> float:
    """The next of 1, 2, 4, 6, 8 and 10 times a power of ten, at most 1."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(min(1.0, next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value * (1 - 1e-9))))
