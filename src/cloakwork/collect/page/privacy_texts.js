// The sentences about privacy. Each must be true for the data that the collector sends: see docs/science/limits.md.

import { count, distance, inEvery, isFloor, isOneUnit, moment, number, windowName } from "./formats.js";

const seen = ({ scope }) => (scope === "network" ? "all sensors" : "one sensor");
const span = (seconds) => `${isOneUnit(seconds) ? "one " : ""}${windowName(seconds)}`;
const figures = ({ epsilon, delta }) => `(epsilon ${number(epsilon, 3)}, delta ${number(delta, 3)})`;

/** One line for the home page, without figures of the theory. */
export function privacyLine({ alpha, window_s: window, stay, scope }, kind) {
  if (kind === "bits") return `Hidden: what any one person does ${inEvery(window)}. Not hidden: habits over a longer time.`;
  const floor = isFloor(kind);
  const from = scope === "network" ? "" : ", from anyone who sees one sensor and no others";
  const left = floor ? "which rooms are in use, how many people there are" : "how many sources there are, and roughly where";
  const sits = stay ? "" : floor ? " and, after hours, where someone sits" : " and, after hours, where one stays";
  return `Hidden: whether ${floor ? "anyone" : "a source"} moved by up to ${distance(alpha, kind)} ${inEvery(window)}${from}. Not hidden: ${left}${sits}.`;
}

/** The guarantees, one sentence each: for a window and for long stays, or for bits. */
export function guarantees(info, kind) {
  const { alpha, stay, window_s: window } = info;
  if (kind === "bits")
    return [`Whether one person is there, when, and in which zone, is hidden ${inEvery(window)} from anyone who sees all sensors ${figures(info)}.`];
  const who = isFloor(kind) ? "person" : "source";
  const observer = `anyone who sees ${seen(info)}${info.scope === "network" ? "" : " and no others"}`;
  return [
    `Moves of up to ${distance(alpha, kind)} by one ${who} are hidden ${inEvery(window)} from ${observer} ${figures(info)}.`,
    stay && `A stay of up to ${span(stay.seconds)} in one place is hidden as far from them, even if they keep all these readings ${figures(stay)}.`,
  ].filter(Boolean);
}

/** The guarantee as a comparison, with what it assumes. */
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

/** What is not hidden, one sentence each. */
export function notHidden({ alpha, scope, stay, window_s: window, left_open: open }, kind) {
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
    stay && "The way of anyone who moves: it is as easy to follow as without the guarantee for stays.",
    `The place of anyone who stays for longer${stay ? ` than ${span(stay.seconds)}, or returns again and again` : ""}: each further ${further} reveals more, until they are found.`,
    scope === "sensor" && "Anything, from anyone who combines several sensors, as this page does.",
    "Anything, from anyone who holds keys of the devices: they can remove the noise.",
    "Anything outside the model: a creaking door, a light in the window.",
    ...open,
  ].filter(Boolean);
}

/** How much of the budget is used: as planned unless a device exceeds it. */
export function budgetText(info, devices) {
  const allowed = count(info.readings_per_window, "reading");
  const plan = `${allowed} ${inEvery(info.window_s)}`;
  const worst = devices.reduce((most, device) => (device.used > (most?.used ?? 0) ? device : most), null);
  if (!worst) return { over: false, text: `The plan allows each device ${plan}; none was heard in the last ${windowName(info.window_s)}.` };
  const over = worst.used > info.readings_per_window;
  if (over) return { over, text: `${worst.id} has sent ${worst.used} readings in the last ${windowName(info.window_s)}; the plan allows ${allowed}.` };
  return { over, text: `As planned: no device sends more than ${plan}.` };
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

const within = (radius, { kind, cell }) => (radius > 0 ? distance(radius, kind) : cell > 0 ? `a cell (${distance(cell, kind)})` : "one place");

/** What an attacker who follows people knows, and how well that fits. */
export function attackText(attack, info, space, now) {
  const radii = attack.sources.map((source) => source.radius);
  const ends = [...new Set([Math.min(...radii), Math.max(...radii)].map((radius) => within(radius, space)))];
  const [everyone, none] = isFloor(space.kind) ? ["everyone", "no one"] : ["every source", "no source"];
  const found = radii.length ? `${count(radii.length, "source")}, each to within ${ends.join(" to ")}` : none;
  const all = attack.frames === 1 ? "the only frame" : `all ${attack.frames} frames`;
  const last = `the last ${count(attack.frames, "frame")} (since ${moment(attack.since, now)})`;
  const time = attack.span === "window" ? windowName(info.window_s) : attack.span;
  const how = info.follows ? `follows ${everyone} through them` : "assumes that nothing moved";
  const who = `Anyone who keeps ${attack.cut ? last : all} of the ${time} up to ${moment(attack.time, now)} and ${how} finds ${found}.`;
  const cut = attack.cut ? " More frames would take too long here; they tell more." : "";
  const wrong = "sources do not move as the site file says, or the physics is wrong";
  const fit = `fit it (p = ${number(attack.fit, 1)})`;
  return `${who}${cut} The readings ${attack.doubtful ? `do not ${fit}: ${wrong}` : fit}.`;
}
