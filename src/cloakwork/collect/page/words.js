// What the page says. Every sentence here has to be true for what the collector told: see docs/limits.md.

const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const PARTS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const DOUBTFUL = 0.005; // a fit this unlikely is reported, as on the command line

export const count = (k, one, many = `${one}s`) => `${k.toLocaleString("en-GB")} ${k === 1 ? one : many}`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Two digits are as many as a vicinity deserves. */
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

/** A length of time, to the two largest parts: "1 h 5 min". */
export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return ms < 1000 && ms > 0 ? `${number(ms / 1000, 1)}\u00a0s` : `${seconds}\u00a0s`;
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  const told = [
    [days, "d"],
    [hours, "h"],
    [minutes, "min"],
    [seconds % 60, "s"],
  ];
  const first = told.findIndex(([value]) => value > 0);
  return told
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value}\u00a0${unit}`)
    .join(" ");
}

/** Seconds in one part, for the side of a chart. */
export function short(seconds) {
  if (seconds < 120) return `${number(seconds)}\u00a0s`;
  return seconds < 7200 ? `${number(seconds / 60)}\u00a0min` : `${number(seconds / 3600)}\u00a0h`;
}

/** The window without "a": "hour", "30 minutes". */
export function windowName(seconds) {
  for (const [name, size] of PARTS) {
    const parts = seconds / size;
    if (Number.isInteger(parts) && parts >= 1) return parts === 1 ? name : `${parts} ${name}s`;
  }
  return `${number(seconds, 3)} seconds`;
}

const inEvery = (seconds) => {
  const name = windowName(seconds);
  return /^\d/.test(name) ? `in any ${name}` : `in every ${name}`;
};

export const day = (time) => DAY.format(new Date(time));
export const clock = (time) => CLOCK.format(new Date(time));

/** A moment; with the day where it is not today's. */
export function moment(time, today) {
  const day = DAY.format(new Date(time));
  return day === DAY.format(new Date(today)) ? clock(time) : `${day}, ${clock(time)}`;
}

/** A length of time in whole minutes where it has any: enough for a glance, and it does not flicker. */
export function rough(ms) {
  return duration(ms < 60_000 || ms >= 3_600_000 ? ms : 60_000 * Math.floor(ms / 60_000));
}

export const ago = (time, today) => (today - time < 1500 ? "just now" : `${rough(today - time)} ago`);

/** A distance in the space of the site: metres, or along a network what its edges say. */
export function distance(value, kind) {
  return isNetwork(kind) ? number(value) : `${number(value)}\u00a0m`;
}

/** How large a vicinity is: one that is a single place has no radius, but a place has a size. */
function size(radius, { kind, cell }) {
  if (radius > 0) return distance(radius, kind);
  return cell > 0 ? `a cell (${distance(cell, kind)})` : "one place";
}

const isNetwork = (kind) => kind === "graph" || kind === "matrix";
/** Whether a method says how likely what it says is. */
export const givesOdds = (estimator) => /point/i.test(estimator ?? "");

/** What one source's figures mean, in one line. */
export function certainty(source, estimator, space) {
  const near = `within ${size(source.radius, space)}${source.radius > 0 ? " of the mark" : ""}`;
  if (!givesOdds(estimator)) return `roughly ${near} (a guide: this method gives no odds)`;
  return `${percent(source.probability)} sure there is one; if so, about 90\u00a0% sure it is ${near}`;
}

/** The same for a label on the plan. */
export function brief(source, estimator, space) {
  const near = `within ${size(source.radius, space)}`;
  return givesOdds(estimator) ? `${percent(source.probability)}, ${near}` : near;
}

const spelled = (k) => NUMBERS[k] ?? String(k);

/** Whether nothing could be recovered from a frame; its status then says why. */
export const failed = (result) => String(result.status).startsWith("failed");

/** How many there are most likely, in one short sentence. */
export function countWords({ counts, sources, status }) {
  if (failed({ status })) return "Not recovered.";
  const best = likeliest({ counts, sources });
  const head = `${capital(spelled(best))} ${best === 1 ? "source" : "sources"}`;
  return counts ? `${head}, ${percent(counts[best])} sure.` : `${head} found.`;
}

/** The other counts that are possible, or what an empty map does not say. */
export function oddsWords({ counts, sources, status }) {
  if (failed({ status })) return `Nothing could be recovered from this frame (${status}).`;
  if (!counts) return sources.length ? "" : "That does not prove that nobody is there.";
  const best = counts.indexOf(Math.max(...counts));
  const others = [...counts.entries()].filter(([k, p]) => k !== best && p >= 0.01).sort((a, b) => b[1] - a[1]);
  return others.length
    ? `Otherwise ${others.map(([k, p]) => `${k ? spelled(k) : "none"} (${percent(p)})`).join(", ")}.`
    : "";
}

const STATUS = {
  best_fit: "No map fits the readings within their noise: this is the best fit.",
  stopped: "Recovery stopped early: this map may be off.",
};

/** What to doubt about a result, one sentence each. */
export function doubts(result) {
  const said = STATUS[result.status] ? [STATUS[result.status]] : [];
  const gone = (result.expected ?? 0) - (result.sensors ?? 0);
  if (gone > 0) said.push(`${count(gone, "sensor")} of ${result.expected} missing in this frame.`);
  const aside = result.set_aside;
  if (aside.length)
    said.push(
      `Set aside, because nothing explains ${aside.length === 1 ? "its reading" : "their readings"}: ${aside.join(", ")}.`,
    );
  if (Number.isFinite(result.fit) && result.fit < DOUBTFUL) {
    said.push(
      `The readings do not fit the model (p = ${number(result.fit, 1)}): sources are of another kind than stated, ` +
        "or the physics is off. Take this map with caution.",
    );
  }
  return said;
}

/** The claim in one sentence. */
export function claim(info, kind) {
  const from = {
    network: " from someone who sees all sensors",
    sensor: " from someone who sees one sensor and no other",
  };
  const within = `${isNetwork(kind) ? "a distance of " : ""}${distance(info.alpha, kind)}`;
  const figures = `(epsilon ${number(info.epsilon, 3)}, delta ${number(info.delta, 3)})`;
  const who = kind === "floorplan" ? "person" : "source";
  return `Each ${who}'s place is hidden to within ${within} ${inEvery(info.window_s)}${from[info.scope] ?? ""} ${figures}.`;
}

const BROKEN = {
  "over budget": ["has sent more readings than the plan allows", "have sent more readings than the plan allows"],
  "other budget": ["states another budget than the plan", "state another budget than the plan"],
  "off the slots": ["does not measure together with the others", "do not measure together with the others"],
};
const NAMED = 4;

/** Some names, and how many more. */
export function few(names) {
  const rest = names.length - NAMED;
  return rest > 1 ? `${names.slice(0, NAMED).join(", ")} and ${rest} more` : names.join(", ");
}

/** Why the claim does not hold for what is in view, which begins at `from`: a warning, or nothing where it does. */
export function warning(info, sensors, from) {
  const since = from - 1000 * info.window_s; // a window that begins before what is shown may still reach into it
  const said = Object.entries(BROKEN).map(([start, [one, many]]) => {
    const inView = ({ reason, last }) => reason.startsWith(start) && last > since;
    const names = sensors.filter((sensor) => (sensor.broken ?? []).some(inView)).map((sensor) => sensor.id);
    return names.length ? `${few(names)} ${names.length === 1 ? one : many}` : "";
  });
  const told = said.filter(Boolean).join("; ");
  return told ? `The claim of this site does not hold for what is shown here: ${told}.` : "";
}

/** How much of their budgets the sensors have used: the one that used most stands for all. */
export function budget(info, sensors) {
  const window = windowName(info.window_s);
  const fresh = sensors.filter((one) => Number.isFinite(one.used));
  const allowed = info.readings_per_window;
  if (!fresh.length) {
    return {
      used: null,
      allowed,
      words: `${count(allowed, "reading")} allowed ${inEvery(info.window_s)}; no sensor was heard in the last ${window}.`,
    };
  }
  const { used, id } = fresh.reduce((a, b) => (a.used >= b.used ? a : b));
  const differ = fresh.some((one) => one.used !== used);
  const who = used > allowed ? ` by ${id}` : differ ? " by the busiest sensor" : "";
  return { used, allowed, words: `${used} of ${allowed} readings used in the last ${window}${who}.` };
}

/** The claim once more, for who wants to know what it means. */
export function meaning(info, kind) {
  const name = windowName(info.window_s);
  const readings = `the readings of ${info.scope === "sensor" ? "one sensor in " : ""}${/^\d/.test(name) ? "" : "one "}${name}`;
  const most = number(Math.exp(Math.min(info.epsilon, 700)) * 1.005, 3); // never rounded below what it is
  const [here, there] = kind === "floorplan" ? ["someone is here", "they are"] : ["a source is here", "it is"];
  return (
    `Whatever one looks for in ${readings}, it is at most ${most} times likelier if ${here} than if ${there} ` +
    `up to ${distance(info.alpha, kind)} away, plus ${number(info.delta, 3)}. ` +
    "This holds for sources no stronger than the site file says, and for its model."
  );
}

/** What is never hidden, one sentence each. */
export function notHidden(info, kind) {
  const window = windowName(info.window_s);
  const said = [
    "That someone or something is there, how many, and how strong they are together.",
    `Moves of more than ${distance(info.alpha, kind)}. Moves of several at once add up.`,
  ];
  if (kind === "floorplan") said.push("Which side of a wall someone is on.");
  said.push(`Who stays for longer: each further ${/^\d/.test(window) ? `stretch of ${window}` : window} tells more.`);
  if (info.scope === "sensor") said.push("Anything, from someone who combines several sensors, as this page does.");
  said.push("Anything, from whoever holds the devices' keys, where there are keys: they can take the noise off.");
  said.push("Anything that the model does not know: a creaking door, a light in the window.");
  return said;
}

/** What the view of a window's data shows, and what it leaves out. */
export function attackWords(attack, info, space, today) {
  const radii = attack.sources.map((one) => one.radius);
  const ends = [...new Set([Math.min(...radii), Math.max(...radii)].map((radius) => size(radius, space)))];
  const seen = radii.length ? `Its vicinities have a radius of ${ends.join(" to ")}.` : "It finds no source.";
  const until = `of the ${windowName(info.window_s)} up to ${moment(attack.time, today)}`;
  const frames = Number.isFinite(attack.frames) ? `the ${attack.frames} frames` : "all frames";
  const how =
    attack.frames === 1
      ? `has one frame ${until}, and can say this`
      : `puts ${frames} ${until} together and takes it that nobody moved, can say this`;
  const cut = attack.cut ? "That window has too many readings to look at all of them here: only the last were." : "";
  const who = `Someone who keeps every reading${attack.frames === 1 ? "" : ","} ${how}.`;
  return [who, seen, cut, longerWords(attack.longer, info)].filter(Boolean).join(" ");
}

/** That one window is not all there is to keep, with a number where there is one. */
function longerWords(longer, info) {
  if (!longer) return "Data that are kept for longer say more.";
  const name = windowName(longer.seconds);
  const most = number(longer.epsilon * 1.005, 3); // never rounded below what it is
  const readings = `the readings of ${/^\d/.test(name) ? name : `a ${name}`}`;
  return `Data that are kept for longer say more: ${readings} have epsilon ${most}, not ${number(info.epsilon, 3)}.`;
}

/** How a found source compares with the simulated truth that it is matched to. */
export function truthWords(matched, kind) {
  if (!matched) return "No simulated source is matched to it.";
  return `The simulated truth is ${distance(matched.apart, kind)} away, ${matched.inside ? "inside" : "outside"} the vicinity.`;
}

/** Whether someone is in a zone; how sure is that of what is said, not of someone being there. */
export function zoneWords({ probability, expected }, kind) {
  if (probability === null) return `weight ${number(expected)} found (this method gives no odds)`;
  const there = probability >= 0.5;
  const sure = there ? probability : 1 - probability;
  const who = { true: ["someone", "a source"], false: ["no one", "no source"] }[there][kind === "floorplan" ? 0 : 1];
  const many = expected >= 1.5 ? `, ${number(expected)} expected` : "";
  return `${sure >= 0.9 ? "very likely" : "probably"} ${who} (${percent(sure)} sure${many})`;
}

const likeliest = ({ counts, sources }) => (counts ? counts.indexOf(Math.max(...counts)) : sources.length);

/** What became of one mark, or nothing: what the vicinity leaves open is no move. */
function moved(old, source, where, kind) {
  const name = `Mark ${source.id}`;
  if (!old) return `${name} is new${where(source)}.`;
  if (!source.at.length) return source.place === old.place ? "" : `${name} is now at ${source.place}.`;
  const far = Math.hypot(...source.at.map((value, axis) => value - old.at[axis]));
  return far > Math.max(source.radius, old.radius) / 2 ? `${name} moved ${distance(far, kind)}${where(source)}.` : "";
}

/** What changed between two results, for someone who listens. */
export function changes(before, after, where, kind) {
  if (!after) return "";
  const known = (result, id) => result.sources.find((one) => one.id === id);
  const gone = before.sources.filter((one) => !known(after, one.id)).map((one) => `Mark ${one.id} is gone.`);
  const others = after.sources.map((source) => moved(known(before, source.id), source, where, kind));
  const number = likeliest(before) === likeliest(after) ? "" : countWords(after);
  return [number, ...others, ...gone].filter(Boolean).join(" ");
}

/** The state of what is shown: a key for its looks, and words. */
export function stateWords({ connected, newest, late, past, today }) {
  if (connected === false) return ["lost", "Connection lost"];
  if (past !== null) return ["past", `Past: ${moment(past, today)}`];
  if (newest === null) return ["none", "Waiting for the first map"];
  return late ? ["old", `Old: ${ago(newest, today)}`] : ["live", `Live: ${ago(newest, today)}`];
}

/** Why there is no newer map. */
export function oldWords(judged, newest, period, today) {
  const waits = judged.filter((one) => one.state === "spent").length > judged.length / 2;
  const why = waits
    ? "Most sensors have used up their budget and wait: that is as planned."
    : `A new one is expected every ${duration(period)}: look at the sensors and the broker.`;
  return `The newest map is of ${moment(newest, today)}. ${why}`;
}
