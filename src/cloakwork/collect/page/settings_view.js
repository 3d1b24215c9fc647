// Settings: the values of the site file that shape this page, and where each stands there.

import { $, fill, h } from "./elements.js";
import { count, distance, duration, inEvery, number } from "./formats.js";

export function drawSettings({ name, kind, sensors, alpha, epsilon, delta, window_s: window, readings_per_window: readings, stay, hold_ms: hold, period_ms: period }, { zones }) {
  const entries = [
    ["Site", name, "name"],
    ["Devices", count(sensors, "device"), kind === "bits" ? "[[sensor]]" : "sensors"],
    ["One reading", `every ${duration(period)}`, "window and readings_per_window in [privacy]"],
    alpha !== null && ["Hidden move", distance(alpha, kind), "alpha in [privacy]"],
    ["Strength", `epsilon ${number(epsilon, 3)}, delta ${number(delta, 3)} ${inEvery(window)}`, "epsilon, delta and window in [privacy]"],
    ["Budget", `${count(readings, "reading")} ${inEvery(window)}`, "readings_per_window in [privacy]"],
    kind !== "bits" && ["Long stays", stay ? `hidden for ${duration(1000 * stay.seconds)}` : "not hidden", "[stay]"],
    ["A room in doubt keeps its state for", duration(hold), "hold in [motion]"],
    ...zones.map(({ id, label }) => [`Room ${id}`, label, "label in its [[zone]]"]),
  ];
  const row = ([setting, value, where]) => h("tr", null, h("th", { scope: "row" }, setting), h("td", null, value), h("td", null, h("code", null, where)));
  fill($("settings-body"), entries.filter(Boolean).map(row));
}
