"""The flat of `cloakwork init` in an ideal world, for figures of one mechanism at a time.

Readings are exact and follow people at once, one claim of epsilon 2 covers ten minutes and none long stays, and the
sensors of a frame measure within 20 ms.
"""

from importlib.resources import files

from cloakwork.site import Site, parse_site

IDEAL = {
    '\nlag = "3min" ': "\nlag = 0.0 ",
    "\nmemory = true ": "\nmemory = false ",
    "\nepsilon = 4.0 ": "\nepsilon = 2.0 ",
    "\nresolution = ": "\n# resolution = ",
    "\nnoise_floor = ": "\n# noise_floor = ",
    '\nlate = "16ms"': '\nlate = "4ms"',
}
STAY = "\n[privacy.stay]", "\n# One table for each sensor"


def plain_flat_text() -> str:
    """Return its site file."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    for real, ideal in IDEAL.items():
        if text.count(real) != 1:
            raise ValueError(f"the example site file has {real!r} {text.count(real)} times")
        text = text.replace(real, ideal)
    before, _, after = text.partition(STAY[0])
    return before + STAY[1] + after.partition(STAY[1])[2]


def plain_flat() -> Site:
    """Return its site."""
    return parse_site(plain_flat_text(), name="flat.toml")
