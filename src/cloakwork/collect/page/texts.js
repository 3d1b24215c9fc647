// The page's sentences. Each must be true for the data that the collector sends: see docs/limits.md.

const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const NAMED = 4;

export const count = (k, one, many = `${one}s`) => `${k.toLocaleString("en-GB")} ${k === 1 ? one : many}`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A number to two digits, which is as precise as a vicinity is. */
export function number(value, digits = 2) {
  if (!Number.isFinite(value)) return "unknown";
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1e6 || (rounded !== 0 && Math.abs(rounded) < 1e-3)
    ? rounded.toExponential().replace("e+", "e")
    : rounded.toLocaleString("en-GB", { maximumFractionDigits: 6, useGrouping: Math.abs(rounded) >= 10_000 });
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

/** Seconds in one unit, for the axis of a chart. */
export function short(seconds) {
  if (seconds < 120) return `${number(seconds)}\u00a0s`;
  return seconds < 7200 ? `${number(seconds / 60)}\u00a0min` : `${number(seconds / 3600)}\u00a0h`;
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

const isOneUnit = (seconds) => windowParts(seconds)[0] === 1;
const inEvery = (seconds) => `in ${isOneUnit(seconds) ? "every" : "any"} ${windowName(seconds)}`;

export const day = (time) => DAY.format(new Date(time));
export const clock = (time) => CLOCK.format(new Date(time));

/** A time; with the date unless it is today's. */
export function moment(time, now) {
  return day(time) === day(now) ? clock(time) : `${day(time)}, ${clock(time)}`;
}

/** A duration without the seconds where it has minutes: enough for a glance, and it does not flicker. */
export function rough(ms) {
  return duration(ms < 60_000 || ms >= 3_600_000 ? ms : 60_000 * Math.floor(ms / 60_000));
}

export const ago = (time, now) => (now - time < 1500 ? "just now" : `${rough(now - time)} ago`);

/** A distance: in metres, or along a network in the unit of its edges. */
export function distance(value, kind) {
  return isNetwork(kind) ? number(value) : `${number(value)}\u00a0m`;
}

/** The size of a vicinity: one that is a single place has no radius, but a place has a size. */
function size(radius, { kind, cell }) {
  if (radius > 0) return distance(radius, kind);
  return cell > 0 ? `a cell (${distance(cell, kind)})` : "one place";
}

const isNetwork = (kind) => kind === "graph" || kind === "matrix";

/** Whether the estimator of a result gives probabilities. */
export const givesOdds = (result) => result.counts !== null;

/** How certain a source is, in one line. */
export function certainty(source, odds, space) {
  const near = `within ${size(source.radius, space)}${source.radius > 0 ? " of the mark" : ""}`;
  if (!odds) return `roughly ${near} (a guide: this method gives no probabilities)`;
  return `${percent(source.probability)} sure there is one; if so, about 90\u00a0% sure it is ${near}`;
}

/** The same for a label on the map. */
export function brief(source, odds, space) {
  const near = `within ${size(source.radius, space)}`;
  return odds ? `${percent(source.probability)}, ${near}` : near;
}

const spelled = (k) => NUMBERS[k] ?? String(k);
const likeliest = ({ counts, sources }) => (counts ? counts.indexOf(Math.max(...counts)) : sources.length);

/** The likeliest number of sources: "Two sources". */
export function countName(result) {
  if (result.failed) return "Not recovered";
  const best = likeliest(result);
  return `${capital(spelled(best))} ${best === 1 ? "source" : "sources"}`;
}

/** The likeliest number of sources, in one short sentence. */
export function countText(result) {
  const name = countName(result);
  if (result.failed) return `${name}.`;
  return result.counts ? `${name}, ${percent(result.counts[likeliest(result)])} sure.` : `${name} found.`;
}

/** The other possible numbers, or what an empty map does not prove. */
export function oddsText({ counts, sources, status, failed }) {
  if (failed) return `Nothing could be recovered from this frame (${status}).`;
  if (!counts) return sources.length ? "" : "This does not prove that no one is there.";
  const best = likeliest({ counts, sources });
  const others = [...counts.entries()].filter(([k, p]) => k !== best && p >= 0.01).sort((a, b) => b[1] - a[1]);
  return others.length
    ? `Otherwise ${others.map(([k, p]) => `${k ? spelled(k) : "none"} (${percent(p)})`).join(", ")}.`
    : "";
}

const STATUS = {
  best_fit: "No map fits the readings within their noise: this is the best fit.",
  stopped: "Recovery stopped early: this map may be inaccurate.",
};

/** Reasons to doubt a result, one sentence each. */
export function doubts(result) {
  const sentences = STATUS[result.status] ? [STATUS[result.status]] : [];
  const missing = result.expected - result.sensors;
  if (missing > 0) sentences.push(`${missing} of ${count(result.expected, "sensor")} missing in this frame.`);
  const aside = result.set_aside;
  if (aside.length)
    sentences.push(
      `Ignored, because nothing explains ${aside.length === 1 ? "its reading" : "their readings"}: ${aside.join(", ")}.`,
    );
  if (result.doubtful) {
    sentences.push(
      `The readings do not fit the model (p = ${number(result.fit, 1)}): the sources differ from those in the site ` +
        "file, or the physics is wrong. Treat this map with caution.",
    );
  }
  return sentences;
}

/** The privacy claim in one sentence. */
export function claim(info, kind) {
  const from = {
    network: " from anyone who sees all sensors",
    sensor: " from anyone who sees one sensor and no other",
  };
  const figures = `(epsilon ${number(info.epsilon, 3)}, delta ${number(info.delta, 3)})`;
  const who = kind === "floorplan" ? "person" : "source";
  const moves = `Moves of up to ${distance(info.alpha, kind)} by one ${who} are hidden`;
  return `${moves} ${inEvery(info.window_s)}${from[info.scope] ?? ""} ${figures}.`;
}

// by the code of a problem, in the singular and the plural
const BROKEN = {
  "over budget": ["has sent more readings than the plan allows", "have sent more readings than the plan allows"],
  "other budget": ["reports another budget than the plan", "report another budget than the plan"],
  "off the slots": ["does not measure together with the others", "do not measure together with the others"],
};

/** Some names, and how many more. */
export function few(names) {
  const rest = names.length - NAMED;
  return rest > 1 ? `${names.slice(0, NAMED).join(", ")} and ${rest} more` : names.join(", ");
}

/** Why the claim does not hold for the period in view, which begins at `from`; nothing where it holds. */
export function warning(info, sensors, from) {
  const since = from - 1000 * info.window_s; // a window that begins earlier may reach into the period in view
  const reasons = Object.entries(BROKEN).map(([code, [one, many]]) => {
    const inView = (broken) => broken.code === code && broken.last > since;
    const names = sensors.filter((sensor) => (sensor.broken ?? []).some(inView)).map((sensor) => sensor.id);
    return names.length ? `${few(names)} ${names.length === 1 ? one : many}` : "";
  });
  const text = reasons.filter(Boolean).join("; ");
  return text ? `The privacy claim of this site does not hold for the period shown: ${text}.` : "";
}

/** How much of their budgets the sensors have used: the busiest sensor counts. */
export function budget(info, sensors) {
  const window = windowName(info.window_s);
  const heard = sensors.filter((sensor) => Number.isFinite(sensor.used));
  const allowed = info.readings_per_window;
  if (!heard.length) {
    const text = `${count(allowed, "reading")} allowed ${inEvery(info.window_s)}; no sensor was heard in the last ${window}.`;
    return { used: null, allowed, text };
  }
  const { used, id } = heard.reduce((a, b) => (a.used >= b.used ? a : b));
  const differ = heard.some((sensor) => sensor.used !== used);
  const who = used > allowed ? ` by ${id}` : differ ? " by the busiest sensor" : "";
  return { used, allowed, text: `${used} of ${allowed} readings used in the last ${window}${who}.` };
}

/** An explanation of the claim. */
export function meaning(info, kind) {
  const window = `${isOneUnit(info.window_s) ? "one " : ""}${windowName(info.window_s)}`;
  const readings = `the readings of ${info.scope === "sensor" ? "one sensor in " : ""}${window}`;
  const factor = number(Math.exp(Math.min(info.epsilon, 700)) * 1.005, 3); // never rounded down
  const [here, there] = kind === "floorplan" ? ["someone is here", "they are"] : ["a source is here", "it is"];
  return (
    `Any pattern in ${readings} is at most ${factor} times likelier if ${here} than if ${there} ` +
    `up to ${distance(info.alpha, kind)} away, plus ${number(info.delta, 3)}. ` +
    "This holds for sources no stronger than the site file says, and if its model is right. " +
    info.assumptions.join(" ")
  );
}

/** What the claim does not hide, one sentence each. */
export function notHidden(info, kind) {
  const window = windowName(info.window_s);
  const sentences = [
    "That someone or something is there, how many, and their total strength.",
    `Moves of more than ${distance(info.alpha, kind)}. Moves of several at once add up.`,
  ];
  if (kind === "floorplan") sentences.push("Which side of a wall someone is on.");
  const further = isOneUnit(info.window_s) ? window : `period of ${window}`;
  sentences.push(`The place of anyone who stays for longer: each further ${further} reveals more, until they are found.`);
  if (info.scope === "sensor") sentences.push("Anything, from anyone who combines several sensors, as this page does.");
  sentences.push("Anything, from anyone who holds the devices' keys, where there are keys: they can remove the noise.");
  sentences.push("Anything outside the model: a creaking door, a light in the window.");
  return sentences;
}

/** What the view of a whole window shows, and what it leaves out. */
export function attackText(attack, info, space, now) {
  const radii = attack.sources.map((source) => source.radius);
  const ends = [...new Set([Math.min(...radii), Math.max(...radii)].map((radius) => size(radius, space)))];
  const found = radii.length ? `Its vicinities have a radius of ${ends.join(" to ")}.` : "It finds no source.";
  const frames = attack.frames === 1 ? "the only frame" : `the ${attack.frames} frames`;
  const window = `of the ${windowName(info.window_s)} up to ${moment(attack.time, now)}`;
  const who = `This is what anyone who keeps every reading can compute from ${frames} ${window}, if no one moved.`;
  const cut = attack.cut ? "The window has too many readings to combine here, so only the last ones are used." : "";
  return [who, found, cut, longerText(attack.longer, info)].filter(Boolean).join(" ");
}

/** That data of more than one window reveal more, in numbers. */
function longerText({ seconds, epsilon, right_place }, info) {
  const most = number(epsilon * 1.005, 3); // never rounded down
  const readings = `the readings of ${isOneUnit(seconds) ? "a " : ""}${windowName(seconds)}`;
  return (
    `Data kept for longer reveal more: ${readings} have epsilon ${most}, not ${number(info.epsilon, 3)}. If one source ` +
    `stays that long, the best guess names its place in up to ${Math.ceil(100 * right_place)}\u00a0% of cases.`
  );
}

/** How a source compares with the simulated truth that it is matched to. */
export function truthText(matched, kind) {
  if (!matched) return "No simulated source matches it.";
  return `The simulated truth is ${distance(matched.apart, kind)} away, ${matched.inside ? "inside" : "outside"} the vicinity.`;
}

/** Whether someone is in a zone, and how sure that statement is. */
export function zoneText({ probability, expected, occupied }, kind) {
  if (probability === null) return `weight ${number(expected)} found (this method gives no probabilities)`;
  const sure = occupied ? probability : 1 - probability;
  const [someone, noOne] = kind === "floorplan" ? ["someone", "no one"] : ["a source", "no source"];
  const many = expected >= 1.5 ? `, ${number(expected)} expected` : "";
  return `${sure >= 0.9 ? "very likely" : "probably"} ${occupied ? someone : noOne} (${percent(sure)} sure${many})`;
}

/** What became of one mark; nothing if it moved less than its vicinity leaves open. */
function moved(old, source, where, kind) {
  const name = `Mark ${source.id}`;
  if (!old) return `${name} is new${where(source)}.`;
  if (!source.at.length) return source.place === old.place ? "" : `${name} is now at ${source.place}.`;
  const far = Math.hypot(...source.at.map((value, axis) => value - old.at[axis]));
  return far > Math.max(source.radius, old.radius) / 2 ? `${name} moved ${distance(far, kind)}${where(source)}.` : "";
}

/** The changes between two results, for screen readers. */
export function changes(before, after, where, kind) {
  if (!after) return "";
  const mark = (result, id) => result.sources.find((source) => source.id === id);
  const gone = before.sources.filter(({ id }) => !mark(after, id)).map(({ id }) => `Mark ${id} is gone.`);
  const others = after.sources.map((source) => moved(mark(before, source.id), source, where, kind));
  const total = likeliest(before) === likeliest(after) ? "" : countText(after);
  return [total, ...others, ...gone].filter(Boolean).join(" ");
}

/** The state of the map: a key for its style, and a text. */
export function stateText({ connected, newest, late, past, now }) {
  if (connected === false) return ["lost", "Connection lost"];
  if (past !== null) return ["past", `Past: ${moment(past, now)}`];
  if (newest === null) return ["none", "Waiting for the first map"];
  return late ? ["old", `Old: ${ago(newest, now)}`] : ["live", `Live: ${ago(newest, now)}`];
}

/** Why there is no newer map. */
export function staleText(sensors, newest, period, now) {
  const waiting = sensors.filter((sensor) => sensor.state === "spent").length > sensors.length / 2;
  const why = waiting
    ? "Most sensors have used up their budget and wait, as planned."
    : `A new one is expected every ${duration(period)}: check the sensors and the broker.`;
  return `The newest map is from ${moment(newest, now)}. ${why}`;
}
