"""The page with more people and sensors than it has room for, and a slider that is dragged faster than data arrives."""

from itertools import combinations
from typing import Any

from playwright.sync_api import Browser, expect

from tests.collect.fake_api import FakeApi
from tests.collect.fake_sites import PERIOD_MS, START_MS, FakeSite, flat_text
from tests.collect.page_kit import text, watching

PEOPLE, MANY, SENSORS = 40, 70, 250
ROWS = 200
DRAG = """async (enough) => {
  const slow = window.fetch;
  window.fetch = async (...asked) => {
    await new Promise((done) => setTimeout(done, 150));
    return slow(...asked);
  };
  const slider = document.getElementById("slider");
  const { left, width } = slider.getBoundingClientRect();
  const seen = new Set();
  for (let k = 0; k < 1000 && seen.size < enough; k += 1) {
    const clientX = left + (0.1 + 0.8 * ((k * 0.0371) % 1)) * width;
    slider.dispatchEvent(new PointerEvent("pointermove", { buttons: 1, clientX }));
    await new Promise((done) => setTimeout(done, 20));
    if (document.getElementById("state-text").textContent.includes("Past")) seen.add(slider.ariaValueNow);
  }
  window.fetch = slow;
  return seen.size;
}"""


class Crowd(FakeSite):
    """The flat, with a person in each of many places."""

    def truth(self, time: int) -> list[dict[str, Any]]:
        del time  # nobody moves
        spots = [(0.6 + 0.9 * (k % 10), 0.8 + 1.8 * (k // 10) % 7) for k in range(self.people)]
        return [{"at": list(at), "label": str(k)} for k, at in enumerate(spots)]


def crowd() -> dict[str, FakeSite]:
    many = flat_text().replace("sensors = 80", f"sensors = {SENSORS}")
    return {"flat": Crowd(many, START_MS - 43 * PERIOD_MS, people=PEOPLE)}


def test_labels_cover_no_other_label_however_many_marks_there_are(browser: Browser) -> None:
    with watching(browser, given=crowd(), viewport={"width": 1440, "height": 900}) as (visit, _):
        expect(visit.page.locator("#plan .mark:not(.doubt)")).to_have_count(PEOPLE)
        labels = visit.page.eval_on_selector_all(
            "#plan .mark .label",
            "all => all.map((one) => ['x', 'y', 'width', 'height'].map((k) => one[k].baseVal.value))",
        )
        assert 2 < len(labels) < PEOPLE
        for (x, y, wide, high), (p, q, across, up) in combinations(labels, 2):
            assert x >= p + across or p >= x + wide or y >= q + up or q >= y + high
        visit.picture("crowd")


def test_the_table_has_the_first_rows_of_many_sensors_and_says_so(browser: Browser) -> None:
    with watching(browser, given=crowd()) as (visit, _):
        page = visit.page
        expect(page.locator("#sensors-body tr")).to_have_count(ROWS)
        assert f"of {SENSORS} sensors" in text(page, "#sensors-summary")
        assert f"first {ROWS}" in text(page, "#sensors-summary")
        page.click("#sensors-head button:has-text('Sensor')")
        page.click("#sensors-head button:has-text('Sensor')")
        expect(page.locator("#sensors-body tr").first).to_contain_text(f"s{SENSORS}")
        page.check("#only-bad")
        expect(page.locator("#sensors-body tr")).to_have_count(0)


def test_a_slider_that_is_dragged_faster_than_results_arrive_shows_some_on_the_way(
    flat_visit: tuple[Any, FakeApi],
) -> None:
    page = flat_visit[0].page
    expect(page.locator("#lanes .there")).not_to_have_count(0)
    assert page.evaluate(DRAG, 4) >= 4
    page.click("#go-live")
    expect(page.locator("#state-text")).to_contain_text("Live")


def test_while_a_slider_is_dragged_past_a_crowd_marks_have_no_numbers_and_afterwards_they_have(
    browser: Browser,
) -> None:
    given: dict[str, FakeSite] = {"flat": Crowd(flat_text(), START_MS - 5 * PERIOD_MS, people=MANY)}
    with watching(browser, given=given, viewport={"width": 1440, "height": 900}) as (visit, _):
        page = visit.page
        expect(page.locator("#lanes .there")).not_to_have_count(0)
        expect(page.locator("#plan .mark:not(.doubt) .number")).to_have_count(MANY)
        box = page.locator("#slider").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.97 * box["width"], box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 5)
        expect(page.locator("#plan .number")).to_have_count(0)
        drawn = "paths => paths.map((path) => path.getAttribute('d').split('M').length - 1)"
        assert sum(page.eval_on_selector_all("#plan path.mark:not(.doubt)", drawn)) == MANY
        visit.picture("dragged")
        page.mouse.up()
        expect(page.locator("#plan .mark:not(.doubt) .number")).to_have_count(MANY)
