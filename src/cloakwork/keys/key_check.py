"""Checks whether the noise that was removed is the noise that was there.

Let v be the readings as sent, and k the noise that a key makes. With the right key, v - k is the true readings, which
are independent of k. With a wrong key, v is independent of k, and v - k contains a fresh copy of -k. So a correlation
of v - k with k speaks against the key, and a correlation of v with k for it. Nothing is assumed about the true
readings, which may vary far more than the noise; removing slow changes block by block makes fewer readings suffice.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import chdtrc, stdtr

from cloakwork._checks import FloatArray, IntArray

BLOCK = 8  # consecutive readings whose mean is removed
LEAST = 4  # readings that a last, shorter block needs
LEAST_RATIO = 1.0  # of noise to step: the distribution of the correlation is that of continuous noise
WRONG = 1e-6  # probability, per file, that a right key is called wrong
SURE = 1e-3  # probability that a wrong key passes for right
_STRONGEST = 1e-4  # smallest p-value that a single block counts with


@dataclass
class Evidence:
    """The number of blocks, and Fisher's statistic against the key being right and against it being wrong."""

    blocks: int = 0
    against_right: float = 0.0
    against_wrong: float = 0.0

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.blocks + other.blocks,
            self.against_right + other.against_right,
            self.against_wrong + other.against_wrong,
        )

    @property
    def p_right(self) -> float:
        """Probability of at least this much evidence against a right key."""
        return float(chdtrc(2 * self.blocks, self.against_right)) if self.blocks else 1.0

    @property
    def p_wrong(self) -> float:
        """Probability of at least this much evidence against a wrong key."""
        return float(chdtrc(2 * self.blocks, self.against_wrong)) if self.blocks else 1.0


@dataclass(frozen=True)
class KeyVerdict:
    """Streams whose key is wrong, streams some of whose keys are wrong, and streams without enough evidence."""

    wrong: tuple[str, ...]
    some_wrong: tuple[str, ...]
    unsure: tuple[str, ...]


@dataclass
class KeyCheck:
    """Collects evidence for each stream, that is, for all readings under one key.

    Notes
    -----
    In a block of b readings, with means removed, k is an isotropic normal vector in b - 1 dimensions. Its correlation r
    with any fixed vector therefore has r sqrt((b - 2) / (1 - r^2)) distributed as Student's t with b - 2 degrees of
    freedom, whatever that vector is: the true readings if the key is right, the sent ones if it is wrong. Fisher's
    method combines the p-values of the blocks: -2 sum log p against chi-square.
    """

    _streams: dict[str, Evidence] = field(default_factory=dict)

    def add(self, stream: str, sent: IntArray, noise: IntArray, ratio: float) -> None:
        """Add readings of a stream as sent, in their order, and the noise that was removed from them."""
        total = self._streams.get(stream, Evidence())
        if ratio >= LEAST_RATIO:
            whole = len(sent) // BLOCK * BLOCK
            total += evidence(sent[:whole].reshape(-1, BLOCK), noise[:whole].reshape(-1, BLOCK))
            if len(sent) - whole >= LEAST:
                total += evidence(sent[None, whole:], noise[None, whole:])
        self._streams[stream] = total

    def verdict(self) -> KeyVerdict:
        """Judge each stream, and together those that cannot be judged one by one."""
        level = WRONG / (len(self._streams) + 1)
        wrong = tuple(name for name, stream in self._streams.items() if stream.p_right < level)
        rest = {name: stream for name, stream in self._streams.items() if name not in wrong and stream.p_wrong >= SURE}
        together = sum(rest.values(), Evidence())
        some_wrong = tuple(rest) if together.p_right < level else ()
        return KeyVerdict(wrong, some_wrong, () if some_wrong or together.p_wrong < SURE else tuple(rest))


def evidence(sent: IntArray, noise: IntArray) -> Evidence:
    """Return the evidence of blocks of equal length, one a row; the numbers of a row differ by less than 2^62."""
    degrees = sent.shape[1] - 2
    k = _centred(noise)
    against_right = stdtr(degrees, _student(_centred(sent - noise), k, degrees))
    against_wrong = stdtr(degrees, -_student(_centred(sent), k, degrees))
    logs = [-2 * np.log(np.maximum(p, _STRONGEST)).sum() for p in (against_right, against_wrong)]
    return Evidence(len(sent), float(logs[0]), float(logs[1]))


def _centred(values: IntArray) -> FloatArray:
    near = (values - values[:, :1]).astype(np.float64)  # subtract as integers first, so that no digit is lost
    return np.asarray(near - near.mean(axis=1, keepdims=True))


def _student(x: FloatArray, y: FloatArray, degrees: int) -> FloatArray:
    """Student's t of the correlation of each pair of rows; 0, which is no evidence, where a row is constant."""
    size = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    r = np.clip(np.divide((x * y).sum(axis=1), size, out=np.zeros(len(x)), where=size > 0), -1, 1)
    return np.asarray(r * np.sqrt(degrees / np.maximum(1 - r**2, 1e-15)))
