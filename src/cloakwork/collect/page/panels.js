// The panels around the map. Nothing here makes requests.

import { $, fill, h, s, setText, setVisible, unit } from "./elements.js";
import { sensorDot, sourceMark, trailPaths, truthMark, vicinityBar } from "./map_symbols.js";
import { moment } from "./formats.js";
import * as texts from "./texts.js";

/** A symbol of the map, as it is drawn there, and its name. */
function keyItem(name, ...parts) {
  const size = 24 * unit();
  const box = { viewBox: `${-size / 2} ${-size / 2} ${size} ${size}`, width: size, height: size };
  return h("li", null, s("svg", { ...box, "aria-hidden": "true" }, ...parts), name);
}

const SENSORS = {
  good: "sensor working",
  wait: "waiting",
  unknown: "no reading yet",
  bad: "silent or offline",
  alarm: "alarm",
};

export function showKey(layers, { kind, odds, marks, trails, sensors }) {
  const r = 11 * unit();
  const sample = (doubt) => sourceMark([0, 0], { id: doubt ? "?" : "1", at: [], doubt });
  const square = s("rect", { x: -r, y: -r, width: 2 * r, height: 2 * r, class: "vicinity" });
  const vicinity = kind === "line" ? vicinityBar(-r, r, 0) : square;
  const ramp = h("span", { class: "ramp", "aria-hidden": "true" });
  const doubts = marks.some(({ doubt }) => doubt);
  const way = [[-r, r / 2], [r, -r / 2]];
  const found = new Set(layers.sensors ? sensors.map(({ level }) => level) : []);
  const dots = Object.entries(SENSORS)
    .filter(([level]) => found.has(level))
    .map(([level, text]) => keyItem(text, sensorDot([0, 0], { id: level }, { level, text })));
  const items = [
    keyItem(odds ? "source, more likely than not" : "source found", sample(false)),
    keyItem(odds ? "where it is, with about 90\u00a0%" : "roughly where it is", vicinity),
    doubts && keyItem("possible, but less likely than not", sample(true)),
    trails.size > 0 && keyItem("its way, fading", ...trailPaths(new Map([[0, [{ time: 0 }, { time: 1 }]]]), () => way, 1, 1)),
    layers.heat && h("li", null, ramp, odds ? "fewer to more sources expected" : "less to more weight"),
    kind === "floorplan" && keyItem("door", s("path", { class: "door", d: `M${-r} 0h${2 * r}` })),
    ...dots,
    layers.truth && keyItem("simulated truth", truthMark([0, 0])),
  ];
  fill($("key"), items.filter(Boolean));
}

/** The headlines of the views, and each mark of the result shown. */
export function showEstimate(result, { marks, views, space, where, now, truth, info }) {
  const lines = views
    .filter((view) => view.result)
    .map(({ name, result: one }) => {
      const { title, sure } = texts.headline(one, space);
      const about = texts.headlineText(name, one, info, now);
      const parts = [h("span", { class: "quiet" }, about), h("strong", { class: "big" }, title), h("span", null, sure)];
      return h("li", { "data-view": name }, ...parts);
    });
  fill($("estimate-views"), lines);
  setVisible($("estimate-none"), !lines.length);
  const odds = result && texts.givesOdds(result);
  const items = marks
    .filter(({ doubt }) => !doubt)
    .map((mark) => {
      const match = truth.find(({ matched }) => matched?.id === mark.id);
      return h(
        "li",
        { "data-id": mark.id },
        h("span", { class: "badge", "aria-hidden": "true" }, String(mark.id)),
        h("strong", null, h("span", { class: "hidden" }, `Mark ${mark.id} `), where(mark)),
        h("span", null, texts.certainty(mark, odds, space)),
        mark.since === undefined ? null : h("span", { class: "quiet" }, texts.followed(mark, result.time)),
        truth.length ? h("span", { class: "compared" }, texts.truthText(match, space.kind)) : null,
      );
    });
  fill($("estimate-sources"), items);
  fill($("estimate-doubts"), (result ? texts.doubts(result, marks, where) : []).map((text) => h("li", null, text)));
}

export function pictureText(result, marks, space, where, now) {
  if (!result) return "No map yet.";
  const odds = texts.givesOdds(result);
  const sentences = marks
    .filter(({ doubt }) => !doubt)
    .map((mark) => `Mark ${mark.id}, ${where(mark)}: ${texts.certainty(mark, odds, space)}.`);
  return [`Map of ${moment(result.time, now)}.`, texts.headlineSentence(result, space), ...sentences].join(" ");
}

/** The claim, or a warning where it does not hold from `from` on. */
export function showPrivacy(info, kind, sensors, from) {
  const warning = texts.warning(info, sensors, from);
  setText($("claim"), warning || texts.claim(info, kind));
  $("claim").dataset.broken = String(Boolean(warning));
  setVisible($("meaning"), !warning);
  setText($("meaning"), texts.meaning(info, kind));
  fill(
    $("not-hidden"),
    texts.notHidden(info, kind).map((text) => h("li", null, text)),
  );
  const budget = texts.budget(info, sensors);
  setText($("budget"), budget.text);
  const bar = $("budget-bar");
  setVisible(bar, budget.used !== null);
  if (budget.used === null) return;
  bar.setAttribute("aria-valuemax", String(budget.allowed));
  bar.setAttribute("aria-valuenow", String(Math.min(budget.used, budget.allowed)));
  bar.setAttribute("aria-valuetext", budget.text);
  bar.dataset.over = String(budget.used > budget.allowed);
  bar.firstElementChild.style.width = `${Math.min(100, (100 * budget.used) / budget.allowed)}%`;
}
