// Symbols that all drawings share; shapes differ as well as colours.

import { s, unit } from "./elements.js";

const LETTER = 6.9; // width of a letter of a label, on average
const LABEL = 22;

export function labelSize(text) {
  const u = unit();
  return { wide: text ? (LETTER * text.length + 18) * u : 0, high: LABEL * u };
}

/** A mark: filled and numbered where a source is more likely than not, dashed for a doubt. */
export function sourceMark([x, y], mark, text = "", spot = [x, y]) {
  const u = unit();
  const at = mark.at.map((value) => value.toFixed(3)).join(" ");
  const kind = mark.doubt ? "mark doubt" : "mark";
  const group = s("g", { class: kind, "data-id": mark.id, "data-at": at, "data-place": mark.place });
  group.append(
    s("circle", { cx: x, cy: y, r: (mark.doubt ? 9 : 10) * u }),
    s("text", { x, y: y + 4.4 * u, class: "number" }, String(mark.id)),
  );
  if (text) {
    const { wide, high } = labelSize(text);
    group.append(
      s("rect", { x: spot[0] - wide / 2, y: spot[1] - high / 2, width: wide, height: high, rx: high / 2, class: "label" }),
      s("text", { x: spot[0], y: spot[1] + 4.4 * u, class: "label-text" }, text),
    );
  }
  return group;
}

/** A vicinity on a line, as a bar with ends: it leaves the curve above it free. */
export function vicinityBar(left, right, y) {
  const r = 7 * unit();
  const ends = [left, right].map((x) => `M${x} ${y - r}v${2 * r}`).join("");
  return s("path", { class: "vicinity bar", d: `M${left} ${y}H${right}${ends}` });
}

/** The ways of tracks, fading with age, one path for each age; `way` gives corners between points. */
export function trailPaths(tracks, way, now, span) {
  const paths = new Map();
  for (const points of tracks.values())
    points.slice(1).forEach((to, k) => {
      const corners = way(points[k], to);
      if (corners.length < 2) return;
      const d = `M${corners.map((corner) => corner.map((v) => v.toFixed(1)).join(" ")).join("L")}`;
      const fade = (0.08 + 0.72 * Math.max(0, 1 - (now - to.time) / span)).toFixed(1);
      paths.set(fade, (paths.get(fade) ?? "") + d);
    });
  return [...paths].map(([fade, d]) => s("path", { class: "trail", d, "stroke-opacity": fade }));
}

/** The true position of a simulated source: a diamond. */
export function truthMark([x, y]) {
  const r = 9 * unit();
  return s("g", { class: "truth" }, s("path", { d: `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` }));
}

/** A sensor by its state: dot (working), ring (waiting), cross (not heard), triangle (alarm). */
export function sensorDot([x, y], sensor, health) {
  const state = health?.level ?? "unknown";
  const r = 3 * unit();
  const circle = (radius) => s("circle", { cx: x, cy: y, r: radius });
  const shapes = {
    wait: () => circle(1.2 * r),
    bad: () => s("path", { d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` }),
    alarm: () => s("path", { d: `M${x} ${y - 1.7 * r}l${1.8 * r} ${3 * r}h${-3.6 * r}z` }),
  };
  const shape = shapes[state]?.() ?? circle(r);
  const title = health ? `${sensor.id}: ${health.text}` : sensor.id;
  return s("g", { class: `sensor ${state}`, "data-sensor": sensor.id }, shape, s("title", null, title));
}
