"""The table of assumptions on the security page: it says what the library computes."""

import mpmath as mp
import pytest

from cloakwork.privacy import Cloak, Profile
from cloakwork.site import Site
from scripts.assumptions import FILE, Assumption, assumptions, example_site, stepped, table
from scripts.plain_flat import plain_flat
from tests.attacks.test_calibration import true_delta


@pytest.fixture(scope="module")
def site() -> Site:
    return example_site()


@pytest.fixture(scope="module")
def rows(site: Site) -> list[Assumption]:
    return list(assumptions(site, site.cloak()))


def test_the_page_has_the_table_that_the_library_computes(site: Site) -> None:
    assert FILE.read_text(encoding="utf-8").splitlines() == table(site), "run python -m scripts.assumptions"


def test_the_first_row_is_the_claim_and_no_error_makes_it_better_than_less_diffusion(
    site: Site, rows: list[Assumption]
) -> None:
    cloak = site.cloak()
    mus = {(row.name, row.true): row.mu for row in rows if row.mu is not None}
    planned = mus["none is wrong", ""]
    assert planned <= Profile(cloak.frame_mu).compose(cloak.readings_per_window).mu * (1 + 1e-9)
    with mp.workdps(40):
        assert float(true_delta(cloak.epsilon, planned)) == pytest.approx(cloak.delta, rel=1e-3)
    assert [name for (name, _), mu in mus.items() if mu < planned] == ["model: diffusion"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("speed of sources", {"speed": 3.0}),
        ("clock", {"clock": 0.016}),
    ],
)
def test_noise_that_is_planned_for_the_error_needs_as_much_more(
    site: Site, rows: list[Assumption], name: str, wrong: dict[str, float]
) -> None:
    privacy = site.spec.privacy.model_copy(update=wrong)
    right: Cloak = Site(site.spec.model_copy(update={"privacy": privacy}), site.folder).cloak()
    found = next(row.mu for row in rows if row.name == name)
    planned = rows[0].mu
    assert found is not None
    assert planned is not None
    assert found / planned == pytest.approx(float(right.sigmas[0] / site.cloak().sigmas[0]), rel=2e-3)


def test_the_step_of_a_usual_thermometer_costs_little_with_its_noise_floor(site: Site) -> None:
    noisy, quiet = stepped(site, noise_floor=0.04), stepped(site)
    exact = site.cloak().sigmas[0] / (1 + site.cloak().resolution_cost)
    assert noisy.sigmas[0] < 1.05 * exact
    assert noisy.resolution_cost < 0.05
    assert quiet.resolution_cost > 4
    assert "state noise_floor" in str(quiet.explain()).lower()
    assert "noise floor of at least 0.04" in str(noisy.explain())


def test_a_plan_without_the_step_of_its_hardware_has_the_delta_that_the_guide_states() -> None:
    cloak = plain_flat().cloak()
    frame = cloak.allowance.cost(cloak.sigmas, cloak.steps + 0.0625)
    delta = Profile(frame).compose(cloak.readings_per_window).delta(cloak.epsilon)
    text = " ".join((FILE.parents[1] / "guides/build-a-device.md").read_text(encoding="utf-8").split())
    assert f"would have delta {delta:.1g} instead of {cloak.delta:.0e}".replace("e-0", "e-") in text
