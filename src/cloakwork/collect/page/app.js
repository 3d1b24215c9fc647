// The page's flow: sign in, choose a site and a page of it, and say what is wrong.

import * as api from "./api.js";
import { DevicesView } from "./devices_view.js";
import { $, h, setText, setVisible } from "./elements.js";
import { ago, number } from "./formats.js";
import { countText } from "./home_model.js";
import { MomentView } from "./moment_view.js";
import { PrivacyView } from "./privacy_view.js";
import { assessDevices, rootCause } from "./problems.js";
import { drawSettings } from "./settings_view.js";
import { SiteData } from "./site_data.js";
import { Timeline } from "./timeline.js";

const RETRY_MS = 5000;
const SITES_MS = 10_000;
const ROUTES = ["home", "history", "devices", "privacy", "settings"];
const STATES = { lost: "no connection", past: "past", none: "waiting", old: "out of date", live: "live" };

let sites = [];
let site = null; // { data, moment, devices, privacy }
let opening = 0;
let lost = null; // the connection: { since, detail }
let timeline = null;

function linked() {
  if (lost === null) return;
  lost = null;
  site?.data.refresh(true);
  tick();
}

/** Handles a failed request: the session has ended, or the connection is lost. */
function failed(problem) {
  if (problem.status === undefined) throw problem;
  if (problem.status === 401) {
    leave();
    showSignIn(sites.length ? "Your session has ended. Sign in again." : "");
  } else if (problem.status !== 404 && problem.status !== 429) {
    // 404: it is gone; 429: too many requests at once. The next request resolves both
    lost ??= { since: Date.now(), detail: problem.status === 0 ? "" : problem.message };
    tick();
  }
}

function leave() {
  opening += 1;
  for (const part of site ? Object.values(site) : []) part.close();
  site = null;
}

function showSignIn(message) {
  for (const id of ["board", "no-sites", "state", "routes", "sites", "banner"]) setVisible($(id), false);
  lost = null;
  document.title = "Sign in · Cloakwork";
  setVisible($("sign-in"), true);
  setText($("sign-in-problem"), message);
  $("token").focus();
}

/** Opens a site; retries where the collector does not respond. */
async function open(name) {
  leave();
  const turn = opening;
  for (const button of $("sites").children) button.setAttribute("aria-current", String(button.dataset.site === name));
  const url = new URL(location.href);
  url.searchParams.set("site", name);
  history.replaceState(null, "", url);
  let geometry;
  try {
    [geometry, sites] = await Promise.all([api.getGeometry(name), api.getSites()]); // with their clocks
  } catch (problem) {
    if (turn !== opening) return;
    failed(problem);
    if (problem.status !== 401) setTimeout(() => turn === opening && begin(null), RETRY_MS);
    return;
  }
  if (turn !== opening) return;
  const info = sites.find((one) => one.name === name);
  const data = new SiteData(info, geometry, { change, link: linked, error: failed });
  for (const id of ["board", "state", "routes"]) setVisible($(id), true);
  site = { data, moment: new MomentView(data, timeline), devices: new DevicesView(data), privacy: new PrivacyView(data) };
  setText($("site-name"), name);
  drawSettings(info, geometry);
  route();
  $("board").ariaBusy = "true";
  await data.start();
  if (turn !== opening) return;
  $("board").ariaBusy = "false";
  tick();
}

/** Draws what has changed. */
function change(what) {
  if (!site) return;
  if (what === "lanes") site.moment.drawLanes();
  if (what === "moment") {
    setText($(`short-${sites.findIndex(({ name }) => name === site.data.name)}`) ?? h("i"), site.moment.model?.short ?? "");
    site.moment.compare();
  }
  tick();
  if (what === "health") drawRoute();
  else if (what === "moment" && document.body.dataset.route === "privacy") site.privacy.attack(site.moment.model);
}

function devicesOf({ health, geometry, info }) {
  const none = { sensors: [], problems: [], alarms: [], faults: [] };
  return assessDevices(health ?? none, geometry, info, api.now());
}

function drawRoute() {
  if (!site) return;
  const { route: at } = document.body.dataset;
  if (at === "devices") site.devices.draw(devicesOf(site.data));
  if (at === "privacy") {
    site.privacy.draw(devicesOf(site.data));
    site.privacy.attack(site.moment.model);
  }
}

function setRange(name) {
  site?.moment.setRange(name);
  site?.data.loadLanes();
}

/** Shows the page that the address names. */
function route() {
  const name = location.hash.slice(2);
  const at = ROUTES.includes(name) ? name : "home";
  document.body.dataset.route = at;
  for (const element of document.querySelectorAll("[data-for]")) setVisible(element, element.dataset.for.split(" ").includes(at));
  for (const link of $("routes").children) {
    if (link.hash === `#/${at}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!site) return;
  if (at === "home" && $("range").value !== "today") setRange("today");
  if (at !== "history" && site.moment.past) site.data.show("live");
  site.moment.compare();
  drawRoute();
  tick();
}

/** Updates what grows old: once a second, and with every change. */
function tick() {
  if (!site) return;
  const { data, moment } = site;
  const { info, latest, health } = data;
  const now = api.now();
  const newest = latest?.time;
  const cause = rootCause({ lost, health, devices: devicesOf(data), newest, result: latest, info, now });
  setVisible($("banner"), cause !== null);
  if (cause) {
    setText($("banner-text"), cause.text);
    $("banner").dataset.level = cause.level;
    setVisible($("banner-link"), cause.link === true && document.body.dataset.route !== "devices");
  }
  const late = newest !== undefined && now - newest > 3 * info.period_ms + 10_000 * info.speed;
  const state = lost ? "lost" : moment.past ? "past" : newest === undefined ? "none" : late || cause?.cut ? "old" : "live";
  for (const id of ["state", "board"]) $(id).dataset.state = state;
  setText($("state-text"), `${STATES[state]}${info.speed === 1 ? "" : `, simulated ${number(info.speed)} times as fast`}`);
  const stale = state === "lost" || state === "old";
  if (stale !== Boolean(moment.stale) || !moment.model) moment.draw(stale);
  else moment.tick();
  document.title = `${moment.model ? `${moment.model.short} · ` : ""}${data.name} · Cloakwork`;
}

/** Shows all sites in a row, where there are several: how many are at each. */
function showSites() {
  const button = ({ name }, k) => h("button", { "data-site": name, onclick: () => open(name) }, h("strong", null, name), " ", h("span", { id: `short-${k}` }));
  $("sites").replaceChildren(...sites.map(button));
  setVisible($("sites"), sites.length > 1);
}

async function loadSites() {
  if (document.hidden || sites.length < 2 || !site) return;
  for (const [k, { name, kind, period_ms: period, speed, ahead_ms: ahead }] of sites.entries()) {
    if (name === site?.data.name) continue;
    const now = api.now();
    const [newest] = (await api.getResults(name, { until: Math.ceil(now + ahead), limit: 1 }).catch(() => null)) ?? []; // the open site reports errors
    const late = newest && now - newest.time > 3 * period + 10_000 * speed;
    setText($(`short-${k}`) ?? h("i"), newest ? `${countText(newest, kind)}${late ? `, ${ago(newest.time, now)}` : ""}` : "no data");
  }
}

/** Shows the list of sites, and the site in the address. */
async function start() {
  sites = await api.getSites();
  lost = null;
  setVisible($("sign-in"), false);
  setVisible($("no-sites"), !sites.length);
  showSites();
  if (!sites.length) return;
  const name = new URL(location.href).searchParams.get("site");
  await open(sites.some((one) => one.name === name) ? name : sites[0].name);
  loadSites();
}

/** Takes the one-time code out of the address, `#code=...`; browsers send no server what follows the #. */
function codeOfAddress() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
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
    if (problem.status === 401 || problem.status === 403) showSignIn(problem.status === 403 ? problem.message : refused);
    else {
      failed(problem);
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

function setTheme(chosen) {
  const root = document.documentElement;
  if (chosen === "system") delete root.dataset.theme;
  else root.dataset.theme = chosen;
  try {
    if (chosen === "system") localStorage.removeItem("cloakwork-theme");
    else localStorage.setItem("cloakwork-theme", chosen);
  } catch {
    // without storage, the choice lasts until the page is closed
  }
  repaint();
}

function repaint() {
  for (const view of [site?.moment.mapView, site?.privacy.own, site?.privacy.other]) view?.repaint();
}

function save(text, name) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

function wire() {
  timeline = new Timeline({ onShow: (moment) => site?.data.show(moment), onStep: (by) => site?.data.step(by) });
  $("theme").value = document.documentElement.dataset.theme ?? "system";
  const on = (id, kind, work) => $(id).addEventListener(kind, work);
  on("theme", "change", (event) => setTheme(event.target.value));
  on("go-live", "click", () => site?.data.show("live"));
  on("range", "change", (event) => setRange(event.target.value));
  on("export", "click", () => site && save(site.moment.csv(), `${site.data.name}.csv`));
  for (const id of ["paths", "alone", "truth"]) on(id, "change", () => site?.moment.compare());
  on("attack-span", "change", drawRoute);
  for (const [id, kind] of [["filter", "input"], ["only-bad", "change"]]) on(id, kind, drawRoute);
  on("sign-in-form", "submit", (event) => {
    event.preventDefault();
    signIn($("token").value.trim());
    $("token").value = "";
  });
  on("sign-out", "click", async () => {
    await api.signOut().catch(() => {});
    leave();
    showSignIn("");
  });
  document.addEventListener("visibilitychange", () => document.hidden || site?.data.refresh(true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  // pasting an address with a code into an open page does not reload it
  globalThis.addEventListener("hashchange", () => {
    const code = codeOfAddress();
    if (code) begin(code);
    else route();
  });
  globalThis.addEventListener("offline", () => failed({ status: 0 }));
  globalThis.addEventListener("online", () => site?.data.refresh(true));
  setInterval(tick, 1000);
  setInterval(loadSites, SITES_MS);
}

wire();
begin(codeOfAddress());
