"""Mistakes that have an experiment of their own, where their numbers are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Elsewhere:
    """What is printed, where, and the experiment that has the number: `where` is how its claim names the place."""

    where: str
    says: str
    experiment: str


ELSEWHERE = (
    Elsewhere("Gilbert and McMillan, Figure 2c", "sqrt(m)/(n T^1.5) is tight in T", "sensitivity"),
    Elsewhere("Gilbert and McMillan, Table 2, complete graph", "Delta of a complete graph", "graph-table"),
    Elsewhere("Gilbert and McMillan, Table 2, star", "Delta of a star", "graph-table"),
    Elsewhere("Gilbert and McMillan, Lemma 6", "Delta >= alpha/kappa", "graph-table"),
    Elsewhere("Gilbert and McMillan, Lemma 7", "Delta <= 4 nu, conversely", "graph-table"),
    Elsewhere("Gilbert and McMillan, Lemma 18", "the exponent e^(-tau s_i)", "graph-table"),
    Elsewhere("Gilbert and McMillan, Figure 3, caption", "5 % between communities, 0.1 % inside", "communities"),
    Elsewhere(
        "Gilbert and McMillan, first version, Lemma 7 and Algorithm 1",
        "the truth is within sigma sqrt(m), with high probability",
        "noisy-recovery",
    ),
    Elsewhere("Fawaz, Muthukrishnan and Nikolov, section 5.1", "running sums have an error of O(1)", "convolution"),
    Elsewhere("Fawaz, Muthukrishnan and Nikolov, Theorem 5", "real noise on complex coefficients", "convolution"),
    Elsewhere("Fawaz, Muthukrishnan and Nikolov, Theorem 5 mended", "the budget of the noise", "convolution"),
    Elsewhere("McMillan, Theorem 10.8", "Algorithm 4 tests one direction", "testers"),
    Elsewhere("McMillan, Theorem 10.11", "Algorithm 6 compares counts with probabilities", "testers"),
    Elsewhere("McMillan, Table 9.1 and Theorem 10.11", "1/beta^2 queries", "testers"),
    Elsewhere("McMillan, Theorem 10.3", "log(2 lambda/alpha) repetitions", "testers"),
)
