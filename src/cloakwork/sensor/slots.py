"""The budget: which slots of powered time were used, and whether another one may be.

Time is cut into slots of one period. A slot is used at most once, and among any `window` slots in a row at most
`allowed` are used. Each reading costs the same, so this is the Gaussian filter: over every interval of the length of
the window the squares of what the readings cost add up to no more than the claim's.
"""

MOST_RUNS = 32


class Slots:
    """Slots used, as runs of [first, last]; `allowed` = 0 means that there is no budget."""

    def __init__(self, runs: list[list[int]], window: int, allowed: int) -> None:
        self.runs = [[first, last] for first, last in runs]
        self.window = window
        self.allowed = allowed

    @property
    def last(self) -> int:
        """The last slot used; -1 if none was."""
        return self.runs[-1][1] if self.runs else -1

    def used(self, slot: int) -> int:
        """How many of the `window` slots that end with this one were used."""
        first = slot - self.window + 1
        return sum(max(0, min(end, slot) - max(start, first) + 1) for start, end in self.runs)

    def free(self, slot: int) -> bool:
        """Whether this slot, later than all used ones, may be used."""
        return slot > self.last and (self.allowed == 0 or self.used(slot) < self.allowed)

    def take(self, slot: int, most: int) -> int:
        """Use `slot` and up to `most` - 1 after it, as far as the budget goes; returns how many were taken."""
        taken = 0
        while taken < most and self.free(slot + taken):
            self._use(slot + taken)
            taken += 1
        return taken

    def _use(self, slot: int) -> None:
        if self.runs and self.runs[-1][1] == slot - 1:
            self.runs[-1][1] = slot
        else:
            self.runs.append([slot, slot])
        while len(self.runs) > 1 and self.runs[0][1] <= slot - self.window:
            self.runs.pop(0)
        if len(self.runs) > MOST_RUNS:
            self._merge()

    def _merge(self) -> None:
        """Forget the smallest gap: its slots count as used, which never allows too much."""
        gaps = [self.runs[k + 1][0] - self.runs[k][1] for k in range(len(self.runs) - 1)]
        k = gaps.index(min(gaps))
        self.runs[k][1] = self.runs.pop(k + 1)[1]
