"""Chebyshev sums over a network by the array library of the columns: NumPy, PyTorch or CuPy.

It imports no more than a machine with a GPU has, so `benchmarks/gpu.py` can load it alone.
"""

import sys
import warnings
from importlib import import_module
from typing import Any

from cloakwork.errors import InputError

_SPARSE = {"numpy": "scipy.sparse", "cupy": "cupyx.scipy.sparse"}


def moved(values: Any, like: Any) -> Any:
    """A NumPy array as one of the library and on the device of `like`."""
    library: Any = sys.modules[library_of(like)]
    return library.asarray(values, device=like.device) if library.__name__ == "torch" else library.asarray(values)


def library_of(array: Any) -> str:
    """The name of the library of an array in double precision; others are refused."""
    name = type(array).__module__.partition(".")[0]
    kind = f"{type(array).__name__} of {getattr(array, 'dtype', 'no type')}"
    if name not in {*_SPARSE, "torch"} or not kind.endswith("float64"):
        raise InputError(f"{kind}: give an array of NumPy, PyTorch or CuPy in double precision.", array=kind)
    return name


def sparse_like(starts: Any, near: Any, weights: Any, like: Any) -> Any:
    """A square sparse matrix, by rows, in the library and on the device of `like`."""
    shape, parts = (len(starts) - 1,) * 2, [moved(part, like) for part in (starts, near, weights)]
    name = library_of(like)
    if name != "torch":
        return import_module(_SPARSE[name]).csr_matrix((parts[2], parts[1], parts[0]), shape=shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that its sparse matrices may change
        return sys.modules[name].sparse_csr_tensor(*parts, size=shape)


def chebyshev_sum(doubled: Any, coefficients: Any, columns: Any) -> Any:
    """The sum of c_k T_k(A) columns, for the sparse matrix 2 A and columns (n, k) of one library."""
    first, *others = (float(coefficient) for coefficient in coefficients)
    total, previous, current = first * columns, columns, columns
    for k, coefficient in enumerate(others):
        following = doubled @ current
        if k == 0:
            following *= 0.5
        else:
            following -= previous
        previous, current = current, following
        total += coefficient * current
    return total
