"""The experiments, one a module; `ORDER` is the order in which they are listed and reported."""

ORDER = (
    "typical",
    "noisy_recovery",
    "private_recovery",
    "many_sources",
    "sensitivity",
    "graph_table",
    "communities",
    "convolution",
    "testers",
    "attacker",
    "movement",
    "infrared",
    "estimators",
    "vicinities",
    "errata",
)
