"""Keys: the keyring of a site, its files, and removing keyed noise from readings (unveiling)."""

from cloakwork.keys.key_check import KeyVerdict
from cloakwork.keys.key_file import PRIVATE
from cloakwork.keys.keyring import (
    DeviceKind,
    Generation,
    KeyRing,
    Master,
    SensorKeys,
    Unveiler,
    bench_name,
    wire_site,
)
from cloakwork.keys.site_keys import (
    FIRST_SECOND,
    NewGeneration,
    export,
    load_keys,
    load_unveiling_keys,
    new_keys,
    open_generation,
    revoke,
    rotate,
    save_export,
    save_new_keys,
)
from cloakwork.keys.unveil import TrueRows, Unveiling

__all__ = [
    "FIRST_SECOND",
    "PRIVATE",
    "DeviceKind",
    "Generation",
    "KeyRing",
    "KeyVerdict",
    "Master",
    "NewGeneration",
    "SensorKeys",
    "TrueRows",
    "Unveiler",
    "Unveiling",
    "bench_name",
    "export",
    "load_keys",
    "load_unveiling_keys",
    "new_keys",
    "open_generation",
    "revoke",
    "rotate",
    "save_export",
    "save_new_keys",
    "wire_site",
]
