// Numbers, times and lengths as people write them.

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const HOUR = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const NUMBER = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 6, useGrouping: "min2" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

const NAMED = 4;

/** The first names of many: "s1, s2, s3, s4 and 8 more". */
export function few(names) {
  const rest = names.length - NAMED;
  return rest > 1 ? `${names.slice(0, NAMED).join(", ")} and ${rest} more` : names.join(", ");
}

export const count = (k, one, many = `${one}s`) => `${k.toLocaleString("en-GB")} ${k === 1 ? one : many}`;

/** A number to two digits, which is as precise as an area is. */
export function number(value, digits = 2) {
  if (!Number.isFinite(value)) return "unknown";
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1e6 || (rounded !== 0 && Math.abs(rounded) < 1e-3)
    ? rounded.toExponential().replace("e+", "e")
    : NUMBER.format(rounded);
}

/** The largest 1, 2 or 5 times a power of ten that is not above a number. */
export function roundDown(value) {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return power * [5, 2, 1].find((k) => k * power <= value * (1 + 1e-9));
}

/** A probability; never 0 % or 100 %, since it comes from noise and often from samples. */
export function percent(p) {
  if (p >= 0.995) return "over 99\u00a0%";
  return p < 0.005 ? "under 1\u00a0%" : `${Math.round(100 * p)}\u00a0%`;
}

/** A duration in its two largest units: "1 h 5 min". */
export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return ms < 1000 && ms > 0 ? `${number(ms / 1000, 1)}\u00a0s` : `${seconds}\u00a0s`;
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value}\u00a0${unit}`)
    .join(" ");
}

/** A window as [number, unit]: [1, "hour"], [30, "minutes"]. */
function windowParts(seconds) {
  for (const [unit, size] of UNITS) {
    const parts = seconds / size;
    if (Number.isInteger(parts) && parts >= 1) return [parts, parts === 1 ? unit : `${unit}s`];
  }
  return [number(seconds, 3), "seconds"];
}

/** A window without an article: "hour", "30 minutes". */
export function windowName(seconds) {
  const [parts, unit] = windowParts(seconds);
  return parts === 1 ? unit : `${parts} ${unit}`;
}

export const isOneUnit = (seconds) => windowParts(seconds)[0] === 1;
export const inEvery = (seconds) => `in ${isOneUnit(seconds) ? "every" : "any"} ${windowName(seconds)}`;

export const day = (time) => DAY.format(new Date(time));
export const clock = (time) => CLOCK.format(new Date(time));
export const hour = (time) => HOUR.format(new Date(time));

export function moment(time, now) {
  const same = new Date(time).toDateString() === new Date(now).toDateString();
  return same ? clock(time) : `${day(time)}, ${clock(time)}`;
}

/** A duration without seconds where it has minutes, so that it does not flicker. */
export function rough(ms) {
  return duration(ms < 60_000 || ms >= 3_600_000 ? ms : 60_000 * Math.floor(ms / 60_000));
}

export const ago = (time, now) => (now - time < 1500 ? "just now" : `${rough(now - time)} ago`);

/** A distance: in metres, or along a network in the unit of its edges. */
export function distance(value, kind) {
  return isNetwork(kind) ? number(value) : `${number(value)}\u00a0m`;
}

const isNetwork = (kind) => kind === "graph" || kind === "matrix";
export const isFloor = (kind) => kind === "floorplan";

const held = new WeakMap(); // the zones of each place, by the list of all zones

/** The zones of a site that hold a place, the smallest first. */
export function zonesOf({ place }, { zones, labels }) {
  if (!held.has(zones)) {
    const of = new Map();
    for (const zone of [...zones].sort((a, b) => a.places.length - b.places.length))
      for (const one of zone.places) of.set(one, [...(of.get(one) ?? []), zone]);
    held.set(zones, of);
  }
  return held.get(zones).get(labels ? labels.indexOf(place) : Number(place)) ?? [];
}
