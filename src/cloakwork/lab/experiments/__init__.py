"""The experiments, one a module; `ORDER` is the order in which they are listed and reported."""

ORDER = (
    "estimators",
    "vicinities",
    "typical",
    "noisy_recovery",
    "many_sources",
    "private_recovery",
    "sensitivity",
    "graph_table",
    "communities",
    "attacker",
    "errata",
    "convolution",
    "testers",
    "movement",
    "infrared",
)
