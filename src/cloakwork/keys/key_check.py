"""Whether the noise that was removed is the noise that was there.

Take v, the readings as they were sent, and k, the noise that a key makes. If the key is right, v - k is the true
readings, which owe nothing to k; if it is wrong, v owes nothing to k, and v - k holds a fresh copy of -k. So the key is
wrong where v - k and k are correlated, and right where v and k are. Nothing is assumed about the true readings, which
may vary far more than the noise; but slow changes are taken out block by block, so that fewer readings are enough.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import chdtrc, stdtr

from cloakwork._checks import FloatArray, IntArray

BLOCK = 8  # readings in a row whose mean is taken out
LEAST = 4  # readings that a last, shorter block needs
LEAST_RATIO = 1.0  # of noise to step: the law of the correlation is that of smooth noise
WRONG = 1e-6  # chance, in a whole file, that a right key is called wrong
SURE = 1e-3  # chance that a wrong key passes for right
_MOST_TELLING = 1e-4  # no single block says more than this


@dataclass
class Evidence:
    """Blocks so far, and what they say against the key being right, and against its being wrong."""

    blocks: int = 0
    against_right: float = 0.0
    against_wrong: float = 0.0

    def plus(self, other: "Evidence") -> "Evidence":
        """Both together."""
        return Evidence(
            self.blocks + other.blocks,
            self.against_right + other.against_right,
            self.against_wrong + other.against_wrong,
        )

    @property
    def p_right(self) -> float:
        """Probability of at least as much evidence against a right key."""
        return float(chdtrc(2 * self.blocks, self.against_right)) if self.blocks else 1.0

    @property
    def p_wrong(self) -> float:
        """Probability of at least as much evidence against a wrong key."""
        return float(chdtrc(2 * self.blocks, self.against_wrong)) if self.blocks else 1.0


@dataclass(frozen=True)
class KeyVerdict:
    """Streams whose key is wrong; those among which a key is wrong, it is not clear which; and those not judged."""

    wrong: tuple[str, ...]
    some_wrong: tuple[str, ...]
    unsure: tuple[str, ...]


@dataclass
class KeyCheck:
    """Collects evidence, stream by stream; a stream is all readings under one key.

    Notes
    -----
    In a block of b readings, with means taken out, k is a normal vector without a preferred direction in b - 1
    dimensions. Its correlation r with any fixed vector therefore has r sqrt((b - 2) / (1 - r^2)) distributed as
    Student's t with b - 2 degrees of freedom, whatever that vector is: the true readings if the key is right, the sent
    ones if it is wrong. Fisher's method puts the p-values of the blocks together: -2 sum log p against chi-square.
    """

    _streams: dict[str, Evidence] = field(default_factory=dict)

    def add(self, stream: str, sent: IntArray, noise: IntArray, ratio: float) -> None:
        """Take in readings of a stream as they were sent, in their order, and the noise that was removed from them."""
        found = self._streams.setdefault(stream, Evidence())
        if ratio < LEAST_RATIO:
            return
        whole = len(sent) // BLOCK * BLOCK
        parts = [found, evidence(sent[:whole].reshape(-1, BLOCK), noise[:whole].reshape(-1, BLOCK))]
        if len(sent) - whole >= LEAST:
            parts.append(evidence(sent[None, whole:], noise[None, whole:]))
        for part in parts[1:]:
            found = found.plus(part)
        self._streams[stream] = found

    def verdict(self) -> KeyVerdict:
        """What the evidence says; streams that cannot be judged one by one are judged together."""
        level = WRONG / (len(self._streams) + 1)
        wrong = tuple(name for name, one in self._streams.items() if one.p_right < level)
        rest = {name: one for name, one in self._streams.items() if name not in wrong and one.p_wrong >= SURE}
        together = Evidence()
        for one in rest.values():
            together = together.plus(one)
        some = tuple(rest) if together.p_right < level else ()
        return KeyVerdict(wrong, some, () if some or together.p_wrong < SURE else tuple(rest))


def evidence(sent: IntArray, noise: IntArray) -> Evidence:
    """What blocks of equal length say, one a row; the numbers of a row differ by less than 2^62."""
    degrees = sent.shape[1] - 2
    k = _centred(noise)
    against_right = stdtr(degrees, _student(_centred(sent - noise), k, degrees))
    against_wrong = stdtr(degrees, -_student(_centred(sent), k, degrees))
    logs = [-2 * np.log(np.maximum(p, _MOST_TELLING)).sum() for p in (against_right, against_wrong)]
    return Evidence(len(sent), float(logs[0]), float(logs[1]))


def _centred(values: IntArray) -> FloatArray:
    near = (values - values[:, :1]).astype(np.float64)  # whole numbers of any size first, so that no digit is lost
    return np.asarray(near - near.mean(axis=1, keepdims=True))


def _student(one: FloatArray, other: FloatArray, degrees: int) -> FloatArray:
    """Student's t of the correlation of each pair of rows; 0, which says nothing, where a row does not vary."""
    size = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    r = np.clip(np.divide((one * other).sum(axis=1), size, out=np.zeros(len(one)), where=size > 0), -1, 1)
    return np.asarray(r * np.sqrt(degrees / np.maximum(1 - r**2, 1e-15)))
