// Talks to the collector, and turns its answers into the shapes that the rest of the page uses.
// All addresses are relative to the page, so that it also works below a path of a reverse proxy.

const WAIT_MS = 10_000;
const LONG_MS = 90_000; // putting a whole window together takes its time
let skew = 0;

/** An answer that is not a success: `status` is 0 where there was no answer at all. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The collector's time in Unix milliseconds: a wall screen's own clock may be off. */
export function now() {
  return Date.now() + skew;
}

function address(path, query = {}) {
  const url = new URL(`v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

function setClock(response) {
  const told = Date.parse(response.headers.get("Date") ?? "");
  // the header counts whole seconds; its own rounding is no reason to jump
  if (Number.isFinite(told) && Math.abs(told + 500 - now()) > 1500) skew = told + 500 - Date.now();
}

async function send(path, { query, method, body, wait }) {
  const headers = { Accept: "application/json" };
  const options = {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(wait),
  };
  if (method !== "GET") headers["X-Cloakwork"] = "1";
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  try {
    const response = await fetch(address(path, query), options);
    setClock(response);
    return [response, await response.text()];
  } catch {
    throw new Refusal(0, "The collector does not answer.");
  }
}

async function ask(path, { query, method = "GET", body, wait = WAIT_MS } = {}) {
  const [response, text] = await send(path, { query, method, body, wait });
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    if (response.ok) throw new Refusal(response.status, "The collector's answer is not JSON.");
  }
  if (response.ok) return answer;
  throw new Refusal(response.status, answer?.error?.message ?? `The collector answered with ${response.status}.`);
}

/** The same, but null where there is no such thing (yet). */
async function askMaybe(path, options) {
  try {
    return await ask(path, options);
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

const site = (name) => `sites/${encodeURIComponent(name)}`;
const list = (answer) => (Array.isArray(answer) ? answer : (answer?.items ?? answer?.sites ?? []));

/** Signs in with `{ token }`, or with the one-time `{ code }` of an address. */
export const signIn = (by) => ask("session", { method: "POST", body: by });
export const signOut = () => ask("session", { method: "DELETE" });
export const getSites = async () => list(await ask("sites"));
export const getGeometry = (name) => ask(site(name));
export const getLatest = async (name) => result(await askMaybe(`${site(name)}/latest`));
export const getResult = async (name, time) => result(await askMaybe(`${site(name)}/results/${time}`));
export const getAttack = async (name, time) =>
  result(await askMaybe(`${site(name)}/attack`, { query: { time }, wait: LONG_MS }));
export const getTruth = async (name, time) => truth(await askMaybe(`${site(name)}/truth`, { query: { time } }));
export const getHealth = async (name) => health(await ask(`${site(name)}/health`));

/** Results of a stretch of time without their maps, oldest first; at most `most`, the newest ones. */
export async function getResults(name, since, until, most) {
  const found = new Map();
  let after = null;
  do {
    const limit = Math.min(500, most);
    const page = await ask(`${site(name)}/results`, { query: { since, until, limit, after } });
    for (const one of list(page)) found.set(one.time, result(one));
    after = page?.next ?? null;
  } while (after !== null && found.size < most);
  return [...found.values()].sort((a, b) => a.time - b.time).slice(-most);
}

function result(told) {
  if (told === null || told === undefined) return null;
  const found = told.result ?? told;
  return {
    ...found,
    time: Number(found.time),
    counts: found.counts ?? null,
    set_aside: found.set_aside ?? [],
    map: found.map ?? null,
    sources: (found.sources ?? []).map((one) => ({ ...one, at: [one.at ?? []].flat(), radius: Number(one.radius) })),
  };
}

function truth(told) {
  if (!told) return null;
  const people = told.sources ?? list(told);
  return { time: told.time ?? null, sources: people.map((one) => ({ ...one, at: [one.at ?? []].flat() })) };
}

function health(told) {
  const part = (one) => (typeof one === "string" ? { state: one } : (one ?? null));
  return {
    delay_ms: told.lag?.delay_ms ?? null,
    waiting: told.lag?.waiting ?? 0,
    stands: told.lag?.reason ?? "",
    broker: part(told.broker),
    store: part(told.store),
    problems: told.problems ?? [],
    alarms: told.alarms ?? [],
    sensors: (told.sensors ?? []).map((one) => ({ ...one, last_seen: one.last_seen ?? null })),
  };
}

/** Listens to the collector until `close` is called; tries again by itself, more and more rarely. */
export class Events {
  constructor(name, { onResult, onOther, onState }) {
    this._name = name;
    this._heard = { onResult, onOther, onState };
    this._wait = 1000;
    this.open = false;
    this._open();
  }

  _open() {
    const source = new EventSource(address("events", { site: this._name }));
    this._source = source;
    const read = (use) => (event) => {
      let told;
      try {
        told = JSON.parse(event.data);
      } catch {
        return; // an event that is cut short comes again
      }
      use(told, event.type);
    };
    source.onopen = () => {
      this._wait = 1000;
      this.open = true;
      this._heard.onState("open");
    };
    source.addEventListener(
      "result",
      read((told) => this._heard.onResult(result(told))),
    );
    for (const kind of ["report", "problem", "alarm", "lag"])
      source.addEventListener(kind, read(this._heard.onOther));
    source.onerror = () => {
      source.close();
      this.open = false;
      this._heard.onState("lost");
      clearTimeout(this._timer);
      this._timer = setTimeout(() => this._open(), this._wait);
      this._wait = Math.min(2 * this._wait, 30_000);
    };
  }

  close() {
    clearTimeout(this._timer);
    this._source.close();
  }
}
