"""The budget: which slots of powered time are used, and whether another slot may be used.

Time is divided into slots of one period. A slot is used at most once, and among any `window` consecutive slots at most
`allowed` are used. Each reading costs the same, so this is a Gaussian privacy filter: over every interval as long as a
window, the squared costs of the readings add up to at most that of the claim.
"""

MAX_RUNS = 32


class Slots:
    """Used slots, as runs of [first, last]; `allowed` = 0 means that there is no limit."""

    def __init__(self, runs: list[list[int]], window: int, allowed: int) -> None:
        self.runs = [[first, last] for first, last in runs]
        self.window = window
        self.allowed = allowed

    @property
    def last(self) -> int:
        """The last used slot, or -1."""
        return self.runs[-1][1] if self.runs else -1

    def used(self, slot: int) -> int:
        """Number of used slots among the `window` slots that end with this one."""
        first = slot - self.window + 1
        return sum(max(0, min(end, slot) - max(start, first) + 1) for start, end in self.runs)

    def free(self, slot: int) -> bool:
        """Whether this slot is later than all used slots and within the budget."""
        return slot > self.last and (self.allowed == 0 or self.used(slot) < self.allowed)

    def take(self, slot: int, most: int) -> int:
        """Use `slot` and up to `most` - 1 slots after it, as far as the budget allows; returns their number."""
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
        if len(self.runs) > MAX_RUNS:
            self._merge()

    def _merge(self) -> None:
        """Close the smallest gap: its slots then count as used, which never allows too many."""
        gaps = [self.runs[k + 1][0] - self.runs[k][1] for k in range(len(self.runs) - 1)]
        k = gaps.index(min(gaps))
        self.runs[k][1] = self.runs.pop(k + 1)[1]
