"""Real pictures of few people who hardly move: who is who, and the same pictures with everybody somewhere else."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray, IntArray
from cloakwork.demo.recorded import Infrared
from papers.bodies import COLUMNS, ROWS

SIZE = np.array([COLUMNS, ROWS], dtype=np.float64)
INSIDE = 2.0  # pixels from the edge that everybody stays away, so that nobody is cut in two


def homes(people: Sequence[FloatArray]) -> FloatArray:
    """Where everyone is on average, in pictures of people who hardly move: the answer of who does not look.

    >>> homes([np.array([[1.0, 1.0], [9.0, 9.0]]), np.array([[9.0, 8.0], [1.0, 3.0]])]).tolist()
    [[1.0, 2.0], [9.0, 8.5]]
    """
    most = max(people, key=len)
    names = who(people, most)
    return np.array(
        [
            np.mean([at[name == k][0] for at, name in zip(people, names, strict=True) if k in name], axis=0)
            for k in range(len(most))
        ]
    )


def who(people: Sequence[FloatArray], home: FloatArray) -> tuple[IntArray, ...]:
    """Who everyone is: those whose homes are nearest, in all.

    >>> pictures = [np.array([[8.0, 9.0]]), np.array([[9.0, 9.0], [1.0, 2.0]])]
    >>> [one.tolist() for one in who(pictures, np.array([[1.0, 1.0], [9.0, 9.0]]))]
    [[1], [1, 0]]
    """
    apart = [np.hypot(*(at[:, None] - home[None]).transpose(2, 0, 1)) for at in people]
    return tuple(np.asarray(linear_sum_assignment(one)[1], dtype=np.int64) for one in apart)


def slid(pictures: Infrared, rng: np.random.Generator) -> Infrared:
    """Each picture mirrored or not, both ways, and slid by whole pixels; what leaves it comes in on the other side.

    Bodies, furniture and the noise of the camera stay what they are, and people are anywhere. The edges of the room run
    through such a picture.
    """
    pairs = [_slid(frame, at, rng) for frame, at in zip(pictures.frames, pictures.people, strict=True)]
    return Infrared(np.array([frame for frame, _ in pairs]), tuple(at for _, at in pairs))


def _slid(frame: FloatArray, people: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    turned = rng.integers(0, 2, 2).astype(bool)
    frame = frame[:: -1 if turned[1] else 1, :: -1 if turned[0] else 1]
    people = np.where(turned, SIZE - people, people)
    while True:
        by = rng.integers(0, SIZE.astype(np.int64))
        at = (people + by) % SIZE
        if (np.minimum(at, SIZE - at) >= INSIDE).all():
            return np.roll(frame, by[::-1], axis=(0, 1)), at
