// The collector's HTTP interface. Addresses are relative, so it also works behind a proxy's path.

const WAIT_MS = 10_000;
const LONG_WAIT_MS = 90_000; // following people through a whole day takes a while
const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;
let clock = { time: Date.now(), at: performance.now(), speed: 1, most: Infinity };

/** A response that is not a success; `status` is 0 where there was no response. */
class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The site's time in Unix milliseconds: this screen's clock may be wrong, a simulated one fast. */
export function now() {
  return clock.time + Math.min(clock.speed * (performance.now() - clock.at), clock.most);
}

/** Sets the site's clock. A fast one waits for its devices, so it is not trusted beyond the next frame. */
export function setClock(time, { speed, period_ms: period }) {
  clock = { time, at: performance.now(), speed, most: speed === 1 ? Infinity : period };
}

function address(path, query = {}) {
  const url = new URL(`v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
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
export const getResult = (name, time) => requestOrNull(`${site(name)}/results/${time}`);
export const getAlone = (name, time) =>
  requestOrNull(`${site(name)}/results/${time}`, { query: { alone: true }, wait: LONG_WAIT_MS });
export const getTruth = (name, time) => requestOrNull(`${site(name)}/truth`, { query: { time } });
export const getTimeline = (name, since) => request(`${site(name)}/timeline`, { query: { since } });
export const getAttack = (name, time, span) =>
  requestOrNull(`${site(name)}/attack`, { query: { time, span }, wait: LONG_WAIT_MS });

/** The newest results of a period without their maps, oldest first. */
export async function getResults(name, { since = null, until = null, limit = 1000 }) {
  const { items } = await request(`${site(name)}/results`, { query: { since, until, limit } });
  return items.reverse();
}

/** Live events until `close` is called; reconnects automatically, less and less often. */
export class EventStream {
  constructor(name, { onResult, onHealth, onState }) {
    this._name = name;
    this._handlers = { onResult, onHealth, onState };
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
    source.addEventListener("health", () => this._handlers.onHealth());
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
