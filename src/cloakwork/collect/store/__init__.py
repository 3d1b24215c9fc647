"""What the collector keeps: readings, results, reports of devices, problems and tokens, in SQLite or PostgreSQL."""

from cloakwork.collect.store.errors import StoreAwayError, StoreBusyError, StoreError, StoreFullError
from cloakwork.collect.store.store import DEFAULT_URL, Store, open_store

__all__ = [
    "DEFAULT_URL",
    "Store",
    "StoreAwayError",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "open_store",
]
