// The collector's HTTP interface. All addresses are relative to the page, so it also works behind a proxy's path.

const WAIT_MS = 10_000;
const ATTACK_WAIT_MS = 90_000; // combining a whole window takes a while
const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;
let skew = 0;

/** A response that is not a success; `status` is 0 where there was no response. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The collector's time in Unix milliseconds: a wall screen's own clock may be wrong. */
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
  const time = Date.parse(response.headers.get("Date") ?? "");
  // the header has whole seconds; its rounding is no reason to jump
  if (Number.isFinite(time) && Math.abs(time + 500 - now()) > 1500) skew = time + 500 - Date.now();
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
    throw new ApiError(0, "The collector does not respond.");
  }
}

async function request(path, { query, method = "GET", body, wait = WAIT_MS } = {}) {
  const [response, text] = await send(path, { query, method, body, wait });
  let data = null;
  try {
    data = text ? JSON.parse(text) : null;
  } catch {
    if (response.ok) throw new ApiError(response.status, "The collector's response is not JSON.");
  }
  if (response.ok) return data;
  throw new ApiError(response.status, data?.error?.message ?? `The collector answered with ${response.status}.`);
}

/** The same, but null where nothing exists (yet). */
async function requestOrNull(path, options) {
  try {
    return await request(path, options);
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

const site = (name) => `sites/${encodeURIComponent(name)}`;

/** Signs in with `{ token }`, or with the one-time `{ code }` of an address. */
export const signIn = (credentials) => request("session", { method: "POST", body: credentials });
export const signOut = () => request("session", { method: "DELETE" });
export const getSites = () => request("sites");
export const getGeometry = (name) => request(site(name));
export const getHealth = (name) => request(`${site(name)}/health`);
export const getLatest = (name) => requestOrNull(`${site(name)}/latest`);
export const getResult = (name, time) => requestOrNull(`${site(name)}/results/${time}`);
export const getTruth = (name, time) => requestOrNull(`${site(name)}/truth`, { query: { time } });
export const getAttack = (name, time) =>
  requestOrNull(`${site(name)}/attack`, { query: { time }, wait: ATTACK_WAIT_MS });

/** Results of a period without their maps, oldest first; at most `most`, the newest ones. */
export async function getResults(name, since, until, most) {
  const results = new Map();
  let after = null;
  do {
    const limit = Math.min(500, most);
    const page = await request(`${site(name)}/results`, { query: { since, until, limit, after } });
    for (const result of page.items) results.set(result.time, result);
    after = page.next;
  } while (after !== null && results.size < most);
  return [...results.values()].sort((a, b) => a.time - b.time).slice(-most);
}

/** Live events until `close` is called; reconnects automatically, less and less often. */
export class EventStream {
  constructor(name, { onResult, onOther, onState }) {
    this._name = name;
    this._handlers = { onResult, onOther, onState };
    this._wait = RETRY_MS;
    this.open = false;
    this._open();
  }

  _open() {
    const source = new EventSource(address("events", { site: this._name }));
    this._source = source;
    source.onopen = () => {
      this._wait = RETRY_MS;
      this.open = true;
      this._handlers.onState("open");
    };
    source.addEventListener("result", (event) => this._handlers.onResult(JSON.parse(event.data)));
    for (const kind of ["report", "problem", "lag"])
      source.addEventListener(kind, () => this._handlers.onOther());
    source.onerror = () => {
      source.close();
      this.open = false;
      this._handlers.onState("lost");
      clearTimeout(this._timer);
      this._timer = setTimeout(() => this._open(), this._wait);
      this._wait = Math.min(2 * this._wait, LONGEST_RETRY_MS);
    };
  }

  close() {
    clearTimeout(this._timer);
    this._source.close();
  }
}
