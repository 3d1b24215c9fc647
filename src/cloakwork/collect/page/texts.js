// The page's sentences. Each must be true for the data that the collector sends: see docs/science/limits.md.

import { ago, count, distance, duration, inEvery, isFloor, isOneUnit } from "./formats.js";
import { moment, number, percent, rough, size, windowName, zonesOf } from "./formats.js";

const NAMED = 4;
const MOST_ROOMS = 12; // in a headline
const UNCLEAR = "room unclear";
const [WHOLE, PART] = [0.8, 0.1]; // shares of a vicinity with which it is in one zone, or may be in another

const spots = new WeakMap(); // by the vicinity of a mark: a large floor has hundreds

/** The `zone` of a mark, where it is in one; a `name` of its whereabouts; and whether its vicinity is as `wide`. */
function spotOf(mark, space) {
  const key = mark.vicinity ?? mark;
  if (!spots.has(key)) spots.set(key, findSpot(mark, space));
  return spots.get(key);
}

function findSpot(mark, space) {
  const around = zonesOf(mark, space);
  const vicinity = new Set(mark.vicinity);
  const share = ({ places }) => places.filter((place) => vicinity.has(place)).length / vicinity.size;
  const zone = vicinity.size ? around.find((one) => share(one) >= WHOLE) : around[0];
  if (zone || !around.length) return { zone, name: zone?.label, wide: vicinity.size > zone?.places.length / 4 };
  const possible = space.zones.filter((one) => share(one) >= PART).map(({ label }) => label);
  return { name: possible.length === 2 ? possible.join(" or ") : UNCLEAR, wide: true };
}

/** Whether the estimator of a result gives probabilities. */
export const givesOdds = (result) => result.counts !== null || result.estimator === "presence";

export function certainty(source, odds, space) {
  const near = `within ${size(source.radius, space)}${source.radius > 0 ? " of the mark" : ""}`;
  if (!odds) return `roughly ${near} (a guide: this method gives no probabilities)`;
  return `${percent(source.probability)} sure there is one; if so, about 90\u00a0% sure it is ${near}`;
}

/** The same for a label on the map; a vicinity that fills a room is called by its name. */
export function brief(source, odds, space) {
  const { wide, name } = spotOf(source, space);
  const near = wide ? name : `within ${size(source.radius, space)}`;
  return odds ? `${percent(source.probability)}, ${near}` : near;
}

/** How long a mark has been followed, up to the time of its result. */
export function followed({ since, same }, time) {
  const long = time > since ? `followed for ${rough(time - since)}` : "new";
  if (long === "new" || !Number.isFinite(same)) return long;
  if (same < 0.5) return `${long}, may have changed places with another`;
  return `${long}, over ${10 * Math.min(9, Math.floor(10 * same))}\u00a0% sure it is the same one`;
}

/** The shortest range of counts that is likelier than not: [low, high, probability]; some if a zone is occupied. */
function likelyCounts({ counts, zones }) {
  let low = counts.indexOf(Math.max(...counts));
  let [high, p] = [low, counts[low]];
  while (p < 0.5 && (low > 0 || high < counts.length - 1)) {
    if ((counts[high + 1] ?? -1) > (counts[low - 1] ?? -1)) p += counts[(high += 1)];
    else p += counts[(low -= 1)];
  }
  if (!high && zones?.some(({ occupied }) => occupied)) p += counts[(high = 1)];
  return [low, high, p];
}

/** How many: "2 people", "1 or 2 people", "No one". */
function howMany(low, high, kind) {
  const [none, one, many] = isFloor(kind) ? ["No one", "person", "people"] : ["No source", "source", "sources"];
  if (high === 0) return none;
  if (low === high) return count(low, one, many);
  return `${low} ${high - low > 1 ? "to" : "or"} ${high} ${many}`;
}

const countsOf = (result) => (result.counts ? likelyCounts(result) : [result.sources.length, result.sources.length, null]);

export function countText(result, kind) {
  if (kind === "bits") return inUseText(result.zones);
  const [low, high] = countsOf(result);
  return howMany(low, high, kind);
}

function inUseText(zones) {
  const used = zones.filter(({ occupied }) => occupied).length;
  return `${used || "None"} of ${count(zones.length, "zone")} in use`;
}

/** The headline of a site of bits: which zones are in use, and how sure that is of each. */
function presenceHeadline({ zones }, named) {
  const used = new Set(zones.filter(({ occupied }) => occupied).map(({ id }) => id));
  const labels = named.filter(({ id }) => used.has(id)).map(({ label }) => label);
  const least = Math.min(...zones.map(({ probability: p }) => Math.max(p, 1 - p)));
  const listed = labels.length > MOST_ROOMS ? few(labels) : labels.join(", ");
  return { title: `${inUseText(zones)}${listed && `: ${listed}`}`, sure: `at least ${percent(least)} sure of each zone` };
}

/** The headline of a result as `title`, "2 people: Living room, Study", and how `sure` that number is. */
export function headline(result, { kind, zones: named }) {
  const { failed, status, zones } = result;
  if (failed) return { title: "Not recovered", sure: status };
  if (kind === "bits") return presenceHeadline(result, named);
  const [low, high, p] = countsOf(result);
  const labels = new Map(named.map(({ id, label }) => [id, label]));
  const there = (zones ?? []).filter(({ occupied }) => occupied);
  const many = there.map(({ expected }) => Math.max(1, Math.round(expected)));
  const fits = many.reduce((sum, k) => sum + k, 0) <= high; // else a room in doubt has someone who counts elsewhere
  const rooms = there.map(({ id }, k) => `${labels.get(id) ?? id}${fits && many[k] > 1 ? ` (${many[k]})` : ""}`);
  const unclear = low && zones?.length && p !== null ? UNCLEAR : "";
  const listed = rooms.length > MOST_ROOMS ? few(rooms) : rooms.join(rooms.length > high ? " or " : ", ");
  const place = listed || unclear;
  const sure = p === null ? "this method gives no probabilities" : `${percent(p)} sure of the number`;
  return { title: `${howMany(low, high, kind)}${place && `: ${place}`}`, sure };
}

export const headlineSentence = (result, space) => Object.values(headline(result, space)).join(", ") + ".";

/** What a headline is made from: the live view or the settled one. */
export function headlineText(name, result, info, now) {
  if (name === "Settled") {
    const later = duration(info.lag * info.period_ms);
    return `Settled, ${moment(result.time, now)}: also from the readings of the ${later} after it`;
  }
  return `Now, ${moment(result.time, now)}: ${info.follows ? "from all readings so far" : "from this frame alone"}`;
}

export function viewText(result, { mode, alone }, info, now) {
  const time = `${{ live: "Now", settled: "Settled" }[mode] ?? "Past"}, ${moment(result.time, now)}`;
  if (alone || !info.follows) return `${time}: from this frame alone`;
  if (result.settled) return `${time}: from the readings before and after`;
  return `${time}: from the readings up to then; it can still change`;
}

/** Where a mark is: its zone, its coordinate, or its node; "near" a zone that counts as empty. */
export function whereText(mark, space, zones) {
  const { zone, name } = spotOf(mark, space);
  if (name) return `${zones?.find(({ id }) => id === zone?.id)?.occupied === false ? "near " : ""}${name}`;
  if (mark.at.length === 1) return `at ${distance(mark.at[0], space.kind)}`;
  return mark.at.length ? "somewhere" : `at ${mark.place}`;
}

/** The rows of the timeline at a moment: the count, if there is one, then each zone. */
export function laneTexts(result, { kind, zones: named }) {
  const total = { id: "", label: isFloor(kind) ? "People" : "Sources", text: "", there: false };
  if (result?.counts) {
    const [low, high, p] = likelyCounts(result);
    Object.assign(total, { text: `${low === high ? low : `${low}–${high}`}, ${percent(p)}`, there: high > 0 });
  }
  const found = new Map((result?.zones ?? []).map((zone) => [zone.id, zone]));
  const rows = named.map(({ id, label }) => {
    const zone = found.get(id);
    return { id, label, text: zone ? zoneText(zone, kind) : "", there: zone?.occupied === true };
  });
  return kind === "bits" ? rows : [total, ...rows];
}

/** Whether someone is in a zone, and how sure that is; a zone in doubt keeps its state for a while. */
export function zoneText({ probability, expected, occupied }, kind) {
  if (probability === null) return `weight ${number(expected)}`;
  const [someone, noOne] = isFloor(kind) || kind === "bits" ? ["someone", "no one"] : ["a source", "no source"];
  const many = expected >= 1.5 ? `about ${Math.round(expected)}` : someone;
  if (!occupied && probability < 0.5) return `${noOne}, ${percent(1 - probability)}`;
  const doubt = !occupied ? "perhaps " : probability < 0.5 ? "perhaps still " : "";
  return `${doubt}${many}, ${percent(probability)}`;
}

const STATUS = {
  best_fit: "No map fits the readings within their noise: this is the best fit.",
  stopped: "Recovery stopped early: this map may be inaccurate.",
};

export function doubts(result, marks, where) {
  const { counts, expected, set_aside: aside } = result;
  const found = marks.filter(({ doubt }) => !doubt).length;
  const unplaced = counts ? likelyCounts(result)[0] - found : 0;
  const possible = marks.filter(({ doubt }) => doubt).map((mark) => `${where(mark)} (${percent(mark.probability)})`);
  const missing = expected - result.sensors;
  return [
    STATUS[result.status],
    unplaced > 0 && `${unplaced} more, whose place is unclear.`,
    possible.length && `Possible, but less likely than not: ${possible.join(", ")}.`,
    !counts && !found && !result.zones?.some(({ occupied }) => occupied) && "This does not prove that no one is there.",
    missing > 0 && `${missing} of ${count(expected, "sensor")} missing in this frame.`,
    aside.length && `Ignored, because no source explains the reading or the device cannot measure: ${aside.join(", ")}.`,
    result.doubtful &&
      `The readings do not fit the model (p = ${number(result.fit, 1)}): the sources differ from those in the site ` +
        "file, or the physics is wrong. Treat this map with caution.",
  ].filter(Boolean);
}

const seen = ({ scope }) => (scope === "network" ? "all sensors" : "one sensor");

const span = (seconds) => `${isOneUnit(seconds) ? "one " : ""}${windowName(seconds)}`;
const figures = ({ epsilon, delta }) => `(epsilon ${number(epsilon, 3)}, delta ${number(delta, 3)})`;

/** The privacy claims, one sentence each: for a window and for long stays, or for bits; and what they leave open. */
export function claim(info, kind) {
  const { alpha, stay, window_s: window } = info;
  if (kind === "bits")
    return `Whether one person is there, when, and in which zone, is hidden ${inEvery(window)} from anyone who sees all sensors ${figures(info)}.`;
  const who = isFloor(kind) ? "person" : "source";
  const observer = `anyone who sees ${seen(info)}${info.scope === "network" ? "" : " and no others"}`;
  return [
    `Moves of up to ${distance(alpha, kind)} by one ${who} are hidden ${inEvery(window)} from ${observer} ${figures(info)}.`,
    stay && `A stay of up to ${span(stay.seconds)} in one place is hidden as far from them, even if they keep all these readings ${figures(stay)}.`,
    ...info.left_open,
    info.forecast && `Simulated: right ${info.forecast.zone} in ${percent(info.forecast.room)} of cases.`,
  ]
    .filter(Boolean)
    .join(" ");
}

// by the code of a problem, in the singular and the plural
const BROKEN = {
  "over budget": ["has", "have", "sent more readings than the plan allows"],
  "other budget": ["reports", "report", "another budget than the plan"],
  "earlier plan": ["was", "were", "provisioned before this plan"],
  "off the slots": ["does", "do", "not measure together with the others"],
};

export function few(names) {
  const rest = names.length - NAMED;
  return rest > 1 ? `${names.slice(0, NAMED).join(", ")} and ${rest} more` : names.join(", ");
}

/** Why the claim does not hold from `from` on; empty where it holds. */
export function warning(info, sensors, from) {
  const since = from - 1000 * info.window_s; // earlier windows may reach into the period
  const reasons = Object.entries(BROKEN).map(([code, [one, many, what]]) => {
    const inView = (broken) => broken.code === code && broken.last > since;
    const names = sensors.filter((sensor) => (sensor.broken ?? []).some(inView)).map((sensor) => sensor.id);
    return names.length ? `${few(names)} ${names.length === 1 ? one : many} ${what}` : "";
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
  return { used, allowed, text: `${used} of ${allowed} readings used in the last ${window}${who || (used === allowed ? ", as planned" : "")}.` };
}

export function meaning(info, kind) {
  const factor = number(Math.exp(Math.min(info.epsilon, 700)) * 1.005, 3); // never rounded down
  if (kind === "bits")
    return (
      `Any pattern in the reports of all sensors in ${span(info.window_s)} is at most ${factor} times likelier for one course of that time than for ` +
      `any other in which one person does something else, plus ${number(info.delta, 3)}. ${info.assumptions.join(" ")}`
    );
  const [here, there] = isFloor(kind) ? ["someone is here", "they are"] : ["a source is here", "it is"];
  return (
    `Any pattern in the readings of ${seen(info)} in ${span(info.window_s)} is at most ${factor} times likelier if ${here} than if ${there} ` +
    `up to ${distance(info.alpha, kind)} away, plus ${number(info.delta, 3)}. ` +
    "This holds for sources no stronger than the site file says, and if its model is right. " +
    info.assumptions.join(" ")
  );
}

/** What the claim does not hide, one sentence each. */
export function notHidden({ alpha, scope, stay, window_s: window }, kind) {
  const further = `${isOneUnit(window) ? "" : "period of "}${windowName(window)}`;
  if (kind === "bits")
    return [
      `Habits: each further ${further} of reports tells more about when zones are in use.`,
      "What several people do together: their effects add up.",
      "Anything, from anyone who also sees other sensors of the same rooms, such as those of another site.",
      "Anything, from anyone who holds keys of the devices: they can remove the noise.",
    ];
  return [
    "That someone or something is there, how many, and their total strength.",
    `Moves of more than ${distance(alpha, kind)}. Moves of several at once add up.`,
    isFloor(kind) && "Which side of a wall someone is on.",
    stay && "The way of anyone who moves: it is as easy to follow as without the claim for stays.",
    `The place of anyone who stays for longer${stay ? ` than ${span(stay.seconds)}, or returns again and again` : ""}: each further ${further} reveals more, until they are found.`,
    scope === "sensor" && "Anything, from anyone who combines several sensors, as this page does.",
    "Anything, from anyone who holds keys of the devices: they can remove the noise.",
    "Anything outside the model: a creaking door, a light in the window.",
  ].filter(Boolean);
}

/** That an attacker knows more than the claim's rule of thumb suggests, and why; empty if not. */
function beyondRule(attack, info, space) {
  const rule = (space.kind === "line" ? 1.65 : 2.15) * info.rule_of_thumb; // radius that holds nine in ten
  const near = Math.min(...attack.sources.map(({ radius }) => Math.max(radius, (space.cell ?? 0) / 2)));
  if (!(near < rule)) return "";
  const knows = [isFloor(space.kind) && "the walls", info.follows ? "how sources move" : "that none moved"].filter(Boolean);
  const more = attack.span === "window" ? "" : ", and has more than one window";
  return ` This beats the claim's rule of thumb, about ${distance(rule, space.kind)} from one window: the attacker knows ${knows.join(" and ")}${more}.`;
}

/** What an attacker who follows people knows, and how well that fits. */
export function attackText(attack, info, space, now) {
  const radii = attack.sources.map((source) => source.radius);
  const ends = [...new Set([Math.min(...radii), Math.max(...radii)].map((radius) => size(radius, space)))];
  const [someone, none] = isFloor(space.kind) ? ["everyone", "no one"] : ["every source", "no source"];
  const found = radii.length ? `${count(radii.length, "source")}, each to within ${ends.join(" to ")}` : none;
  const all = attack.frames === 1 ? "the only frame" : `all ${attack.frames} frames`;
  const last = `the last ${count(attack.frames, "frame")} (since ${moment(attack.since, now)})`;
  const span = attack.span === "window" ? windowName(info.window_s) : attack.span;
  const how = info.follows ? `follows ${someone} through them` : "assumes that nothing moved";
  const who = `Anyone who keeps ${attack.cut ? last : all} of the ${span} up to ${moment(attack.time, now)} and ${how} finds ${found}.`;
  const cut = attack.cut ? " More frames would take too long here; they tell more." : "";
  const wrong = "sources do not move as the site file says, or the physics is wrong";
  const fit = `fit it (p = ${number(attack.fit, 1)})`;
  return `${who}${cut}${beyondRule(attack, info, space)} The readings ${attack.doubtful ? `do not ${fit}: ${wrong}` : fit}.`;
}

/** What data of a longer time reveal, in the numbers of the plan. */
export function longerText({ kind, longer: { seconds, epsilon, right_place, radius } }) {
  if (kind === "bits")
    return `All reports of ${windowName(seconds)} together have epsilon ${number(epsilon * 1.005, 3)} for what one person did in that time.`;
  const length = radius < 1 ? `${number(100 * radius, 1)}\u00a0cm` : `${number(radius)}\u00a0m`;
  const named = `is named in up to ${Math.ceil(100 * right_place)}\u00a0% of cases`;
  const who = `${isFloor(kind) ? "Someone who stays" : "A source that stays"} in one place for ${windowName(seconds)}`;
  const kept = `by anyone who keeps every reading (epsilon ${number(epsilon * 1.005, 3)})`;
  return `${who} ${radius === null ? named : `is located to about ${length}`} ${kept}.`;
}

export const speedText = (speed) =>
  `A simulation, ${number(speed)} times as fast as real time: a minute here takes ${duration(60_000 / speed)}.`;

/** How a source compares with the simulated truth that it is matched to. */
export function truthText(matched, kind) {
  if (!matched) return "No simulated source matches it.";
  return `The simulated truth is ${distance(matched.apart, kind)} away, ${matched.inside ? "in" : "out"}side the vicinity.`;
}

/** Changes between two results, for screen readers: headline, and marks that came, went or moved. */
export function changes(before, after, where, space) {
  if (!after) return "";
  const followed = ({ sources }) => sources.filter(({ label }) => label !== null);
  const [old, here] = [before, after].map((result) => new Map(followed(result).map((one) => [one.label, where(one)])));
  const moved = [...here].filter(([label, place]) => old.get(label) !== place).map((one) => `Mark ${one.join(": ")}.`);
  const gone = [...old.keys()].filter((label) => !here.has(label)).map((label) => `Mark ${label} is gone.`);
  const [was, is] = [before, after].map((result) => headline(result, space).title);
  return [...(was === is ? [] : [`${is}.`]), ...moved, ...gone].join(" ");
}

/** The state of the map: a key for its style, and a text. */
export function stateText({ connected, newest, late, past, mode, now }) {
  if (connected === false) return ["lost", "Connection lost"];
  if (past !== null) return ["past", `${mode === "settled" ? "Settled" : "Past"}: ${moment(past, now)}`];
  if (newest === null) return ["none", "Waiting for the first map"];
  return late ? ["old", `Old: ${ago(newest, now)}`] : ["live", `Live: ${ago(newest, now)}`];
}

export function staleText(sensors, newest, period, now) {
  const waiting = sensors.filter((sensor) => sensor.state === "spent").length > sensors.length / 2;
  const why = waiting
    ? "Most sensors have used up their budget and wait, as planned."
    : `A new one is expected every ${duration(period)}: check the sensors and the broker.`;
  return `The newest map is from ${moment(newest, now)}. ${why}`;
}
