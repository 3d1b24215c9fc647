// The page's flow: sign in, choose a site, and say when the connection is lost.

import * as api from "./api.js";
import { $, say, shown } from "./dom.js";
import { SensorTable } from "./health.js";
import { History } from "./history.js";
import { SiteView } from "./site.js";
import * as words from "./words.js";

const SPEAK_MS = 5000;
const AGAIN_MS = 5000;
const THEMES = { system: "light", light: "dark", dark: "system" };

let sites = [];
let view = null;
let opening = 0;
const page = { connected: null, lostAt: null, history: null, table: null, announce, connection, trouble };

const waiting = new Map();
let spoke = 0;

/** Says something to those who listen, not more often than they can hear it; `words` are made when they are said. */
function announce(about, words) {
  if (!waiting.size) setTimeout(speak, Math.max(0, spoke + SPEAK_MS - Date.now()));
  waiting.set(about, words);
}

function speak() {
  const said = [...waiting.values()].map((words) => words()).filter(Boolean);
  waiting.clear();
  if (!said.length) return;
  spoke = Date.now();
  $("announce").textContent = said.join(" ");
}

function connection(good, detail = "") {
  if (good === page.connected) return;
  const before = page.connected;
  page.connected = good;
  if (!good) {
    page.lostAt ??= api.now();
    const since = words.clock(page.lostAt);
    const what = detail
      ? `The collector cannot answer since ${since}. It says: ${detail}`
      : `The connection to the collector is lost since ${since}.`;
    say($("lost"), `${what} What you see may be out of date. This page tries again by itself.`);
  } else {
    page.lostAt = null;
    if (before === false) announce("connection", () => "Connected again.");
    if (before === false) view?.refresh();
  }
  shown($("lost"), !good);
  view?.tick();
}

/** An answer that was no success: the session has ended, or the connection is lost. */
function trouble(problem) {
  if (problem.status === undefined) throw problem;
  if (problem.status === 401) {
    leave();
    showSignIn(sites.length ? "Your session has ended. Sign in again." : "");
  } else if (problem.status !== 404 && problem.status !== 429) {
    // 404: it is gone; 429: too much was asked at once. Both pass with the next question
    connection(false, problem.status === 0 ? "" : problem.message);
  }
}

function leave() {
  opening += 1;
  view?.close();
  view = null;
}

function showSignIn(message) {
  for (const id of ["board", "empty", "picker", "state", "sign-out", "lost", "old"]) shown($(id), false);
  page.connected = null;
  document.title = "Sign in · Cloakwork";
  shown($("sign-in"), true);
  say($("sign-in-problem"), message);
  $("token").focus();
}

/** Opens a site; tries again where the collector does not answer. */
async function open(name) {
  leave();
  const turn = opening;
  $("site").value = name;
  const url = new URL(location.href);
  url.searchParams.set("site", name);
  globalThis.history.replaceState(null, "", url);
  let geometry;
  try {
    geometry = await api.getGeometry(name);
  } catch (problem) {
    if (turn !== opening) return;
    trouble(problem);
    if (problem.status !== 401) setTimeout(() => turn === opening && begin(null), AGAIN_MS);
    return;
  }
  if (turn !== opening) return;
  for (const id of ["board", "state"]) shown($(id), true);
  view = new SiteView(
    sites.find((one) => one.name === name),
    geometry,
    page,
  );
  await view.start();
}

/** The list of sites, and the one that the address asks for. */
async function start() {
  sites = await api.getSites();
  connection(true);
  shown($("sign-in"), false);
  shown($("sign-out"), true);
  shown($("empty"), !sites.length);
  shown($("picker"), sites.length > 0);
  $("site").replaceChildren(...sites.map((one) => new Option(one.name, one.name)));
  if (!sites.length) return;
  const asked = new URL(location.href).searchParams.get("site");
  await open(sites.some((one) => one.name === asked) ? asked : sites[0].name);
}

/** A one-time code behind the # of the address, `#code=...`, which no server is sent. It is gone from there at once. */
function codeOfAddress() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) globalThis.history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** Signs in by the code, if there is one; what a used one says is told only where there is no session either. */
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
      trouble(problem);
      setTimeout(() => begin(refused ? null : code), AGAIN_MS);
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
    // a browser that keeps nothing: the choice lasts until the page is closed
  }
  nameTheme();
}

function nameTheme() {
  say($("theme"), `Theme: ${document.documentElement.dataset.theme ?? "system"}`);
  view?.plan.repaint();
  view?.beside.plan.repaint();
}

/** Shows on the plan which sensor a row of the table is about. */
function point(id) {
  for (const dot of document.querySelectorAll(".sensor.pointed")) dot.classList.remove("pointed");
  if (id) document.querySelector(`#plan [data-sensor="${CSS.escape(id)}"]`)?.classList.add("pointed");
}

function wire() {
  page.table = new SensorTable($("sensors-head"), $("sensors-body"), { onPoint: point });
  page.history = new History({
    onShow: (time) => view?.showMoment(time),
    onRange: () => view?.loadHistory(),
    today: api.now,
  });
  $("theme").addEventListener("click", nextTheme);
  $("site").addEventListener("change", (event) => open(event.target.value));
  $("only-bad").addEventListener("change", () => view?.drawHealth());
  for (const id of ["layer-heat", "layer-sensors"]) $(id).addEventListener("change", () => view?.redraw());
  for (const id of ["layer-truth", "layer-attack"]) {
    $(id).addEventListener("change", () => {
      view?.redraw();
      view?.beside.show();
    });
  }
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
  shown($("full"), Boolean(document.fullscreenEnabled));
  $("full").addEventListener("click", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen();
  });
  document.addEventListener("visibilitychange", () => document.hidden || view?.refresh());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  // an address with a code that is pasted where the page is open already does not load it anew
  globalThis.addEventListener("hashchange", () => {
    const code = codeOfAddress();
    if (code) begin(code);
  });
  globalThis.addEventListener("offline", () => connection(false));
  globalThis.addEventListener("online", () => view?.refresh());
  setInterval(() => view?.tick(), 1000);
  nameTheme();
}

wire();
begin(codeOfAddress());
