// Puts what is known into the page. Nothing here asks the collector.

import { $, h, s, say, shown } from "./dom.js";
import { Chart } from "./charts.js";
import { expected } from "./history.js";
import * as words from "./words.js";

const charts = {};

/** One name and its sign for the key below the map. */
function keyItem(sign, name) {
  return h("li", null, sign, name);
}

const sign = (...parts) => s("svg", { viewBox: "0 0 22 16", width: 22, height: 16, "aria-hidden": "true" }, ...parts);

/** The key: only what is on the map. */
export function drawKey(layers, kind, odds) {
  const rooms = kind === "floorplan";
  const items = [
    keyItem(
      sign(
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
        sign(
          s("path", { class: "wall", "stroke-width": 3, d: "M1 8h6m8 0h6" }),
          s("path", { class: "door", d: "M7 8h8" }),
        ),
        "wall and door",
      ),
    layers.sensors &&
      keyItem(sign(s("g", { class: "sensor good" }, s("circle", { cx: 11, cy: 8, r: 3 }))), "sensor at work"),
    layers.sensors &&
      keyItem(sign(s("g", { class: "sensor wait" }, s("circle", { cx: 11, cy: 8, r: 3.5 }))), "waits"),
    layers.sensors &&
      keyItem(sign(s("g", { class: "sensor bad" }, s("path", { d: "M8 5l6 6m0-6l-6 6" }))), "not heard"),
    layers.sensors && keyItem(sign(s("g", { class: "sensor alarm" }, s("path", { d: "M11 3l5 9h-10z" }))), "alarm"),
    layers.truth &&
      keyItem(sign(s("g", { class: "truth" }, s("path", { d: "M11 1l7 7l-7 7l-7-7z" }))), "simulated truth"),
  ];
  $("key").replaceChildren(...items.filter(Boolean));
}

/** Whom each found source is matched to in the simulated truth, nearest first. */
export function matchTruth(truth, sources, holds) {
  const pairs = truth.flatMap((one, k) =>
    sources
      .filter((source) => source.at.length && one.at.length)
      .map((source) => [Math.hypot(...one.at.map((v, axis) => v - source.at[axis])), k, source]),
  );
  const matched = truth.map((one) => ({ ...one, matched: null, apart: null }));
  const taken = new Set();
  for (const [far, k, source] of pairs.sort((a, b) => a[0] - b[0])) {
    if (matched[k].matched || taken.has(source.id)) continue;
    Object.assign(matched[k], { matched: source, apart: far, inside: holds(source, truth[k].at) });
    taken.add(source.id);
  }
  return matched;
}

/** The list of sources in words; `truth` where it is shown. */
export function tell(result, { space, where, today, live, truth }) {
  say(
    $("told-when"),
    result
      ? `${live ? "Live" : "Then"}: ${words.moment(result.time, today)}, from one frame of ${words.count(result.sensors ?? 0, "sensor")}`
      : "",
  );
  say($("told-count"), result ? words.countWords(result) : "Nothing yet.");
  say($("told-odds"), result ? words.oddsWords(result) : "");
  const items = (result?.sources ?? []).map((source) => {
    const place = where(source).replace(/^, /, "");
    const known = truth?.find((one) => one.matched?.id === source.id);
    const compared = truth ? [h("span", { class: "compared" }, words.truthWords(known, space.kind))] : [];
    return h(
      "li",
      { value: source.id, "data-id": source.id },
      h("strong", null, `Mark ${source.id}${place ? ` ${place}` : ""}`),
      h("span", null, words.certainty(source, result.estimator, space)),
      ...compared,
    );
  });
  $("told-sources").replaceChildren(...items);
  $("told-doubts").replaceChildren(...(result ? words.doubts(result) : []).map((text) => h("li", null, text)));
}

/** What the picture shows, for someone who does not see it. */
export function pictureWords(result, space, where, today) {
  if (!result) return "No map yet.";
  const marks = result.sources.map(
    (source) => `Mark ${source.id}${where(source)}: ${words.certainty(source, result.estimator, space)}.`,
  );
  return [`Map of ${words.moment(result.time, today)}.`, words.countWords(result), ...marks].join(" ");
}

/** A line for each zone of the site; nothing where it has none, or where the result does not say. */
export function drawZones(named, told, kind) {
  const labels = new Map((named ?? []).map((zone) => [zone.id, zone.label]));
  const lines = (told ?? []).map((zone) => ({ ...zone, label: labels.get(zone.id) ?? zone.id }));
  const list = $("zones-list");
  const items = lines.map((zone) =>
    h(
      "li",
      { "data-id": zone.id, "data-there": String(zone.occupied === true) },
      h("span", { class: "shape", "aria-hidden": "true" }),
      h("span", null, h("strong", null, `${zone.label}:`), ` ${words.zoneWords(zone, kind)}`),
    ),
  );
  shown($("zones"), items.length > 0);
  const same = items.length === list.children.length && items.every((item, k) => item.isEqualNode(list.children[k]));
  if (!same) list.replaceChildren(...items); // a screen reader would lose its place
}

/** The claim, or a warning where it does not hold for what is in view, which begins at `from`. */
export function drawPrivacy(info, kind, sensors, from) {
  const warning = words.warning(info, sensors, from);
  say($("claim"), warning || words.claim(info, kind));
  $("claim").dataset.broken = String(Boolean(warning));
  shown($("meaning"), !warning);
  say($("meaning"), words.meaning(info, kind));
  if (!$("not-hidden").children.length || $("not-hidden").dataset.site !== info.name) {
    $("not-hidden").dataset.site = info.name;
    $("not-hidden").replaceChildren(...words.notHidden(info, kind).map((text) => h("li", null, text)));
  }
  const budget = words.budget(info, sensors);
  say($("budget"), budget.words);
  const bar = $("budget-bar");
  shown(bar, budget.used !== null);
  if (budget.used === null) return;
  bar.setAttribute("aria-valuemax", String(budget.allowed));
  bar.setAttribute("aria-valuenow", String(Math.min(budget.used, budget.allowed)));
  bar.setAttribute("aria-valuetext", budget.words);
  bar.dataset.full = String(budget.used >= budget.allowed);
  bar.dataset.over = String(budget.used > budget.allowed);
  bar.firstElementChild.style.width = `${Math.min(100, (100 * budget.used) / budget.allowed)}%`;
}

/** Frames in the window that ends at each result: what the readings have used of the budget. */
function used(results, window) {
  let first = 0;
  return results.map((one, k) => {
    while (results[first].time <= one.time - window) first += 1;
    return [one.time, k - first + 1];
  });
}

/** All charts over the stretch that the slider shows; `results` reach one window further back. */
export function drawCharts(results, { info, from, today, mark }) {
  if (!charts.sources) {
    charts.sources = new Chart($("charts"), { title: "Sources", unit: "Expected sources" });
    charts.delay = new Chart($("charts"), { title: "Delay", unit: "Seconds", tick: words.short });
    charts.used = new Chart($("charts"), { title: "Budget", unit: "Readings in the window", steps: true });
  }
  const window = words.windowName(info.window_s);
  const inside = ([time]) => time >= from;
  const common = { from, to: today, today, mark, gap: 3.5 * info.period_ms };
  const good = results.filter((one) => !words.failed(one));
  const sources = good.map((one) => [one.time, expected(one)]).filter(inside);
  const delays = results
    .filter((one) => Number.isFinite(one.solved))
    .map((one) => [one.time, Math.max(0, one.solved - one.time) / 1000])
    .filter(inside);
  const frames = used(results, 1000 * info.window_s).filter(inside);
  const newest = (points, unit) =>
    points.length
      ? `Newest: ${[words.number(points.at(-1)[1]), unit].filter(Boolean).join("\u00a0")}.`
      : "Nothing in this stretch.";
  charts.sources.show({ ...common, points: sources, words: `expected in each frame. ${newest(sources, "")}` });
  charts.delay.show({
    ...common,
    points: delays,
    words: `from measuring to the map. ${delays.length ? `Newest: ${words.short(delays.at(-1)[1])}.` : newest(delays, "")}`,
  });
  charts.used.show({
    ...common,
    points: frames,
    limit: info.readings_per_window,
    words: `frames in the ${window} before. ${newest(frames, `of ${info.readings_per_window}`)}`,
  });
}
