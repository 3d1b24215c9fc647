"""A small flat whose devices read once a minute, for tests of the whole line."""

from cloakwork.site import Site, parse_site

SMALL = """
name = "small"
sensors = 6
baseline = 21.0
unit = "°C"
[physics]
kind = "floorplan"
cell = 0.5
size = [4.0, 3.0]
regime = "steady"
reach = 1.0
footprint = 0.5
[sources]
kind = "lasting"
strength = 5.0
max_count = 2
[privacy]
epsilon = 8.0
delta = 1e-5
alpha = 0.1
window = "10min"
readings_per_window = 10
"""


def small_flat() -> Site:
    return parse_site(SMALL, name="small.toml")
