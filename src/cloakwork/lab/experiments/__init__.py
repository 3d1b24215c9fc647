"""The experiments, one a module; `ORDER` is the order in which they are listed and reported."""

ORDER = (
    "estimators",
    "vicinities",
)
