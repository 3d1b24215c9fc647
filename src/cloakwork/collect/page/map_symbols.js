// Symbols that all drawings share; shapes differ as well as colours.

import { s, unit } from "./elements.js";

const CROWD = 20; // marks, from which on they are smaller

/** Where people are: a disc for each, with the number of its track where numbers are shown. */
export function sourceMarks(marks, px, numbers) {
  const u = marks.length > CROWD ? 0.65 * unit() : unit();
  return marks.map((mark) => sourceMark(px(mark), mark, numbers, u));
}

function sourceMark([x, y], mark, numbers, u) {
  const label = mark.label ?? "";
  const circle = s("circle", { cx: x, cy: y, r: (numbers ? 10 : 7) * u });
  const attributes = { class: "mark", "data-id": label, "data-at": mark.at.map((value) => value.toFixed(3)).join(" "), "data-room": mark.room?.id };
  return s("g", attributes, circle, numbers ? s("text", { x, y: y + 4.4 * u }, String(label)) : null);
}

/** Where tracks were: a small disc for each point, fading with age; `px` gives the pixels of a point. */
export function trailDots(trails, px) {
  return trails.flatMap((points) =>
    points.map((point, k) => {
      const [cx, cy] = px(point);
      return s("circle", { class: "trail", cx, cy, r: 3.5 * unit(), "fill-opacity": (0.15 + (0.7 * (k + 1)) / points.length).toFixed(2) });
    }),
  );
}

/** The true position of a simulated source: a diamond. */
export function truthMark([x, y]) {
  const r = 9 * unit();
  return s("path", { class: "truth", d: `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` });
}

/** A sensor by its state: dot (working), ring (waiting), cross (not heard), triangle (alarm). */
export function sensorDot([x, y], { id, level = "unknown", text = "" }) {
  const r = 3 * unit();
  const circle = (radius) => s("circle", { cx: x, cy: y, r: radius });
  const shapes = {
    wait: () => circle(1.2 * r),
    bad: () => s("path", { d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` }),
    alarm: () => s("path", { d: `M${x} ${y - 1.7 * r}l${1.8 * r} ${3 * r}h${-3.6 * r}z` }),
  };
  const title = s("title", null, text ? `${id}: ${text}` : id);
  return s("g", { class: `sensor ${level}`, "data-sensor": id }, shapes[level]?.() ?? circle(r), title);
}
