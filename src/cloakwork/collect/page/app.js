// The page's flow: sign in, choose a site, and show when the connection is lost.

import * as api from "./api.js";
import { $, setText, setVisible } from "./elements.js";
import { clock } from "./formats.js";
import { SensorTable } from "./health_panel.js";
import { Overview } from "./overview.js";
import { SiteView } from "./site_view.js";
import * as texts from "./texts.js";
import { Timeline } from "./timeline.js";

const ANNOUNCE_MS = 5000;
const RETRY_MS = 5000;
const THEMES = { system: "light", light: "dark", dark: "system" };

let sites = [];
let view = null;
let opening = 0;
const page = { connected: null, lostAt: null, timeline: null, table: null, overview: null, announce, setConnected, handleError };

const announcements = new Map();
let announcedAt = 0;

/** Announces a change to screen readers at a pace they can follow; `makeText` runs when due. */
function announce(topic, makeText) {
  if (!announcements.size) setTimeout(flushAnnouncements, Math.max(0, announcedAt + ANNOUNCE_MS - Date.now()));
  announcements.set(topic, makeText);
}

function flushAnnouncements() {
  const sentences = [...announcements.values()].map((makeText) => makeText()).filter(Boolean);
  announcements.clear();
  if (!sentences.length) return;
  announcedAt = Date.now();
  $("announce").textContent = sentences.join(" ");
}

function setConnected(connected, detail = "") {
  if (connected === page.connected) return;
  const before = page.connected;
  page.connected = connected;
  if (!connected) {
    page.lostAt ??= Date.now();
    const since = clock(page.lostAt);
    const what = detail
      ? `The collector reported an error at ${since}: ${detail}`
      : `The connection to the collector was lost at ${since}.`;
    setText($("lost"), `${what} The data shown may be out of date. This page retries automatically.`);
  } else {
    page.lostAt = null;
    if (before === false) announce("connection", () => "Reconnected.");
    if (before === false) view?.refresh();
  }
  setVisible($("lost"), !connected);
  view?.tick();
}

/** Handles a failed request: the session has ended, or the connection is lost. */
function handleError(problem) {
  if (problem.status === undefined) throw problem;
  if (problem.status === 401) {
    leave();
    showSignIn(sites.length ? "Your session has ended. Sign in again." : "");
  } else if (problem.status !== 404 && problem.status !== 429) {
    // 404: it is gone; 429: too many requests at once. The next request resolves both
    setConnected(false, problem.status === 0 ? "" : problem.message);
  }
}

function leave() {
  opening += 1;
  view?.close();
  view = null;
}

function showSignIn(message) {
  for (const id of ["board", "no-sites", "picker", "state", "sign-out", "lost", "stale", "fast"])
    setVisible($(id), false);
  page.overview.begin([]);
  page.connected = null;
  document.title = "Sign in · Cloakwork";
  setVisible($("sign-in"), true);
  setText($("sign-in-problem"), message);
  $("token").focus();
}

/** Opens a site; retries where the collector does not respond. */
async function open(name) {
  leave();
  const turn = opening;
  $("site").value = name;
  page.overview.mark(name);
  const url = new URL(location.href);
  url.searchParams.set("site", name);
  globalThis.history.replaceState(null, "", url);
  let geometry;
  try {
    [geometry, sites] = await Promise.all([api.getGeometry(name), api.getSites()]); // with their clocks
  } catch (problem) {
    if (turn !== opening) return;
    handleError(problem);
    if (problem.status !== 401) setTimeout(() => turn === opening && begin(null), RETRY_MS);
    return;
  }
  if (turn !== opening) return;
  for (const id of ["board", "state"]) setVisible($(id), true);
  view = new SiteView(
    sites.find((site) => site.name === name),
    geometry,
    page,
  );
  await view.start();
  page.overview.load(); // not awaited: whoever opens a site goes on with it
}

/** Shows the list of sites, and the site in the address. */
async function start() {
  sites = await api.getSites();
  setConnected(true);
  setVisible($("sign-in"), false);
  setVisible($("sign-out"), true);
  setVisible($("no-sites"), !sites.length);
  setVisible($("picker"), sites.length > 0);
  $("site").replaceChildren(...sites.map(({ name }) => new Option(name, name)));
  page.overview.begin(sites);
  if (!sites.length) return;
  const name = new URL(location.href).searchParams.get("site");
  await open(sites.some((site) => site.name === name) ? name : sites[0].name);
}

/** Takes the one-time code out of the address, `#code=...`; browsers send no server what follows the #. */
function codeOfAddress() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) globalThis.history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** Signs in with a code, if any; a used one matters only where there is no session. */
async function begin(code) {
  let refused = "";
  try {
    if (code) {
      await api.signIn({ code }).catch((problem) => {
        if (problem.status !== 401) throw problem;
        refused = problem.message;
      });
    }
    await start();
  } catch (problem) {
    if (problem.status === 401 || problem.status === 403) {
      showSignIn(problem.status === 403 ? problem.message : refused);
    } else {
      handleError(problem);
      setTimeout(() => begin(refused ? null : code), RETRY_MS);
    }
  }
}

async function signIn(token) {
  try {
    await api.signIn({ token });
    await start();
    $("main").focus({ preventScroll: true });
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    showSignIn(problem.message);
  }
}

function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[root.dataset.theme ?? "system"];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem("cloakwork-theme");
    else localStorage.setItem("cloakwork-theme", next);
  } catch {
    // without storage, the choice lasts until the page is closed
  }
  nameTheme();
}

function nameTheme() {
  setText($("theme"), `Theme: ${document.documentElement.dataset.theme ?? "system"}`);
  view?.mapView.repaint();
  view?.attacker.mapView.repaint();
}

function wire() {
  page.overview = new Overview(open);
  page.table = new SensorTable($("sensors-head"), $("sensors-body"));
  page.timeline = new Timeline({
    onShow: (moment) => view?.show(moment),
    onStep: (by) => view?.step(by),
    onRange: () => view?.loadTimeline(),
    now: api.now,
  });
  $("theme").addEventListener("click", nextTheme);
  $("site").addEventListener("change", (event) => open(event.target.value));
  $("only-bad").addEventListener("change", () => view?.drawHealth());
  for (const id of ["layer-heat", "layer-sensors"]) $(id).addEventListener("change", () => view?.redraw());
  for (const id of ["layer-truth", "layer-alone", "layer-attack", "attack-span"])
    $(id).addEventListener("change", () => view?.compare());
  $("sign-in-form").addEventListener("submit", (event) => {
    event.preventDefault();
    signIn($("token").value.trim());
    $("token").value = "";
  });
  $("sign-out").addEventListener("click", async () => {
    await api.signOut().catch(() => {});
    leave();
    showSignIn("");
  });
  document.addEventListener("visibilitychange", () => document.hidden || view?.refresh());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  // pasting an address with a code into an open page does not reload it
  globalThis.addEventListener("hashchange", () => {
    const code = codeOfAddress();
    if (code) begin(code);
  });
  globalThis.addEventListener("offline", () => setConnected(false));
  globalThis.addEventListener("online", () => view?.refresh());
  setInterval(() => view?.tick(), 1000);
  nameTheme();
}

wire();
begin(codeOfAddress());
