"""A stream in plain sentences."""

import math
from typing import TYPE_CHECKING

from cloakwork._checks import rounded_up
from cloakwork.privacy import Explanation

if TYPE_CHECKING:
    from cloakwork.series.stream import Stream


def explain(stream: "Stream") -> Explanation:
    """Say what a stream hides and costs, next to publishing once at the end."""
    return Explanation(_hidden(stream), _not_hidden(stream), _cost(stream), _drivers(stream))


def _hidden(stream: "Stream") -> tuple[str, ...]:
    return (
        "Someone who sees every output, from the first to the last, cannot tell well whether a change of up to "
        f"{stream.contribution} was made to the values, all times together: any event they wait for is at most "
        f"e^{stream.epsilon:g} = {rounded_up(math.exp(min(stream.epsilon, 700)), 3)} times likelier with "
        "it than without, plus "
        f"{stream.delta:g}.",
        "That holds too where later values depend on what was published before.",
    )


def _not_hidden(stream: "Stream") -> tuple[str, ...]:
    return (
        "When values come and how many there are is public: push at a fixed beat, zeros included.",
        f"A change of k times {stream.contribution} is hidden with k mu only: someone who comes back day after day is "
        "hidden as far as all their values together stay within the contribution.",
        "After a crash a new stream begins, with a budget of its own: both count for everyone who was in the first.",
    )


def _cost(stream: "Stream") -> tuple[str, ...]:
    now, batch = math.sqrt(stream.expected_mse), math.sqrt(stream.batch_mse)
    span = "in the long run" if stream.horizon is None else f"over {stream.horizon:,} values"
    ratio = stream.expected_mse / stream.batch_mse
    price = f"the mean squared error is {ratio:.3g} times as large" if ratio > 1.005 else "there is nothing to pay"
    return (
        f"Outputs are off by {now:.4g} (root mean square) {span}; published at once at the end, they would be off by "
        f"{batch:.4g}: {price} for having them in time.",
        f"The first output is off by {math.sqrt(stream.variances[0]):.4g}, the last by "
        f"{math.sqrt(stream.variances[-1]):.4g}.",
    )


def _drivers(stream: "Stream") -> tuple[str, ...]:
    return (
        f"{type(stream.mechanism).__name__}: one whole number is released for each value, made of the last "
        f"{stream.band:,}, with noise of its own; outputs follow from these.",
        f"It keeps up to {stream.memory:,} numbers of the past.",
    )
