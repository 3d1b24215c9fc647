// The panels around the map. Nothing here makes requests.

import { $, h, s, setText, setVisible } from "./elements.js";
import { Chart } from "./charts.js";
import { expected } from "./time_slider.js";
import * as texts from "./texts.js";

const charts = {};

/** A symbol and its name for the key below the map. */
function keyItem(symbol, name) {
  return h("li", null, symbol, name);
}

const symbol = (...parts) => s("svg", { viewBox: "0 0 22 16", width: 22, height: 16, "aria-hidden": "true" }, ...parts);

/** The key: only what the map shows. */
export function showKey(layers, kind, odds) {
  const rooms = kind === "floorplan";
  const items = [
    keyItem(
      symbol(
        s("g", { class: "source sure" }, s("circle", { cx: 11, cy: 8, r: 7, class: "vicinity" })),
        s("g", { class: "mark" }, s("circle", { cx: 11, cy: 8, r: 2.5 })),
      ),
      "found source and its vicinity",
    ),
    layers.heat &&
      keyItem(
        h("span", { class: "ramp", "aria-hidden": "true" }),
        odds ? "fewer to more expected sources" : "less to more weight",
      ),
    rooms &&
      keyItem(
        symbol(
          s("path", { class: "wall", "stroke-width": 3, d: "M1 8h6m8 0h6" }),
          s("path", { class: "door", d: "M7 8h8" }),
        ),
        "wall and door",
      ),
    layers.sensors &&
      keyItem(symbol(s("g", { class: "sensor good" }, s("circle", { cx: 11, cy: 8, r: 3 }))), "sensor working"),
    layers.sensors &&
      keyItem(symbol(s("g", { class: "sensor wait" }, s("circle", { cx: 11, cy: 8, r: 3.5 }))), "waiting"),
    layers.sensors &&
      keyItem(symbol(s("g", { class: "sensor bad" }, s("path", { d: "M8 5l6 6m0-6l-6 6" }))), "not heard"),
    layers.sensors && keyItem(symbol(s("g", { class: "sensor alarm" }, s("path", { d: "M11 3l5 9h-10z" }))), "alarm"),
    layers.truth &&
      keyItem(symbol(s("g", { class: "truth" }, s("path", { d: "M11 1l7 7l-7 7l-7-7z" }))), "simulated truth"),
  ];
  $("key").replaceChildren(...items.filter(Boolean));
}

/** The estimate as text; with `truth` where that is shown. */
export function showEstimate(result, { space, where, now, live, truth }) {
  setText(
    $("estimate-when"),
    result
      ? `${live ? "Live" : "Past"}: ${texts.moment(result.time, now)}, from one frame of ${texts.count(result.sensors, "sensor")}`
      : "",
  );
  setText($("estimate-count"), result ? texts.countText(result) : "Nothing yet.");
  setText($("estimate-odds"), result ? texts.oddsText(result) : "");
  const items = (result?.sources ?? []).map((source) => {
    const place = where(source).replace(/^, /, "");
    const match = truth?.find(({ matched }) => matched?.id === source.id);
    const compared = truth ? [h("span", { class: "compared" }, texts.truthText(match, space.kind))] : [];
    return h(
      "li",
      { value: source.id, "data-id": source.id },
      h("strong", null, `Mark ${source.id}${place ? ` ${place}` : ""}`),
      h("span", null, texts.certainty(source, texts.givesOdds(result), space)),
      ...compared,
    );
  });
  $("estimate-sources").replaceChildren(...items);
  $("estimate-doubts").replaceChildren(...(result ? texts.doubts(result) : []).map((text) => h("li", null, text)));
}

/** A description of the map for screen readers. */
export function pictureText(result, space, where, now) {
  if (!result) return "No map yet.";
  const marks = result.sources.map(
    (source) => `Mark ${source.id}${where(source)}: ${texts.certainty(source, texts.givesOdds(result), space)}.`,
  );
  return [`Map of ${texts.moment(result.time, now)}.`, texts.countText(result), ...marks].join(" ");
}

/** A line for each zone of the site; none where the site or the result has no zones. */
export function showZones(named, zones, kind) {
  const labels = new Map((named ?? []).map((zone) => [zone.id, zone.label]));
  const lines = (zones ?? []).map((zone) => ({ ...zone, label: labels.get(zone.id) ?? zone.id }));
  const list = $("zones-list");
  const items = lines.map((zone) =>
    h(
      "li",
      { "data-id": zone.id, "data-there": String(zone.occupied === true) },
      h("span", { class: "shape", "aria-hidden": "true" }),
      h("span", null, h("strong", null, `${zone.label}:`), ` ${texts.zoneText(zone, kind)}`),
    ),
  );
  setVisible($("zones"), items.length > 0);
  const same = items.length === list.children.length && items.every((item, k) => item.isEqualNode(list.children[k]));
  if (!same) list.replaceChildren(...items); // a screen reader would lose its place
}

/** The claim, or a warning where it does not hold for the period in view, which begins at `from`. */
export function showPrivacy(info, kind, sensors, from) {
  const warning = texts.warning(info, sensors, from);
  setText($("claim"), warning || texts.claim(info, kind));
  $("claim").dataset.broken = String(Boolean(warning));
  setVisible($("meaning"), !warning);
  setText($("meaning"), texts.meaning(info, kind));
  if (!$("not-hidden").children.length || $("not-hidden").dataset.site !== info.name) {
    $("not-hidden").dataset.site = info.name;
    $("not-hidden").replaceChildren(...texts.notHidden(info, kind).map((text) => h("li", null, text)));
  }
  const budget = texts.budget(info, sensors);
  setText($("budget"), budget.text);
  const bar = $("budget-bar");
  setVisible(bar, budget.used !== null);
  if (budget.used === null) return;
  bar.setAttribute("aria-valuemax", String(budget.allowed));
  bar.setAttribute("aria-valuenow", String(Math.min(budget.used, budget.allowed)));
  bar.setAttribute("aria-valuetext", budget.text);
  bar.dataset.full = String(budget.used >= budget.allowed);
  bar.dataset.over = String(budget.used > budget.allowed);
  bar.firstElementChild.style.width = `${Math.min(100, (100 * budget.used) / budget.allowed)}%`;
}

/** Frames in the window that ends at each result: how much of the budget they used. */
function used(results, window) {
  let first = 0;
  return results.map((one, k) => {
    while (results[first].time <= one.time - window) first += 1;
    return [one.time, k - first + 1];
  });
}

/** All charts over the period of the slider; `results` reach one window further back. */
export function drawCharts(results, { info, from, now, mark }) {
  if (!charts.sources) {
    charts.sources = new Chart($("charts"), { title: "Sources", unit: "Expected sources" });
    charts.delay = new Chart($("charts"), { title: "Delay", unit: "Seconds", tick: texts.short });
    charts.used = new Chart($("charts"), { title: "Budget", unit: "Readings in the window", steps: true });
  }
  const window = texts.windowName(info.window_s);
  const inside = ([time]) => time >= from;
  const common = { from, to: now, now, mark, gap: 3.5 * info.period_ms };
  const good = results.filter((result) => !result.failed);
  const sources = good.map((one) => [one.time, expected(one)]).filter(inside);
  const delays = results
    .filter((one) => Number.isFinite(one.solved))
    .map((one) => [one.time, Math.max(0, one.solved - one.time) / 1000])
    .filter(inside);
  const frames = used(results, 1000 * info.window_s).filter(inside);
  const newest = (points, unit) =>
    points.length
      ? `Newest: ${[texts.number(points.at(-1)[1]), unit].filter(Boolean).join("\u00a0")}.`
      : "No data in this period.";
  charts.sources.show({ ...common, points: sources, text: `expected in each frame. ${newest(sources, "")}` });
  charts.delay.show({
    ...common,
    points: delays,
    text: `from measurement to map. ${delays.length ? `Newest: ${texts.short(delays.at(-1)[1])}.` : newest(delays, "")}`,
  });
  charts.used.show({
    ...common,
    points: frames,
    limit: info.readings_per_window,
    text: `frames in the ${window} before. ${newest(frames, `of ${info.readings_per_window}`)}`,
  });
}
