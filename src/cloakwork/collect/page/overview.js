// All sites in one row, such as the floors of a building, with their counts and problems.

import * as api from "./api.js";
import { $, h, setText, setVisible, shape } from "./elements.js";
import { ago, count } from "./formats.js";
import { assessSensors, problemsOf } from "./health_panel.js";
import * as texts from "./texts.js";

const RESULT_MS = 10_000;
const HEALTH_EACH = 6; // the health of a large site is long: with each sixth result

/** Shown only where there is more than one site; `open` is called with the name of the one chosen. */
export class Overview {
  constructor(open) {
    this.open = open;
    this.rows = new Map();
    this.rounds = 0;
    setInterval(() => document.hidden || this.load(), RESULT_MS);
  }

  begin(sites) {
    this.rows = new Map(sites.length > 1 ? sites.map((info) => [info.name, this._row(info)]) : []);
    $("overview").replaceChildren(...[...this.rows.values()].map(({ item }) => item));
    setVisible($("overview"), this.rows.size > 0);
    this.rounds = 0;
  }

  _row(info) {
    const [headline, problems] = [h("span"), h("span")];
    const parts = [h("strong", null, info.name), headline, h("span", { class: "problems" }, shape(), problems)];
    const button = h("button", { onclick: () => this.open(info.name) }, ...parts);
    setText(headline, "Loading");
    return { info, item: h("li", { "data-level": "unknown" }, button), button, headline, problems };
  }

  mark(name) {
    for (const [one, { button }] of this.rows) button.setAttribute("aria-current", String(one === name));
  }

  /** Loads what the rows show; after the site that is open, whose map comes first. */
  async load() {
    const withHealth = this.rounds % HEALTH_EACH === 0;
    this.rounds += 1;
    for (const { info } of this.rows.values()) {
      const until = Math.ceil(api.now() + info.ahead_ms); // later ones have a wrong clock
      const found = await api.getResults(info.name, { until, limit: 1 }).catch(() => null); // the open site reports it
      if (found) this.showResult(info.name, found[0]);
      const health = withHealth && (await api.getHealth(info.name).catch(() => null));
      if (health) this.showHealth(info.name, health);
    }
  }

  /** Shows how many a result found; undefined where there is none yet. */
  showResult(name, result) {
    const row = this.rows.get(name);
    if (!row) return;
    const { kind, period_ms: period, speed } = row.info;
    const late = result && api.now() - result.time > 3 * period + 10_000 * speed;
    const found = result && texts.countText(result, kind);
    setText(row.headline, result ? `${found}${late ? `, ${ago(result.time, api.now())}` : ""}` : "No map yet");
  }

  /** Shows how many problems a site has, as its own list counts them. */
  showHealth(name, health) {
    const row = this.rows.get(name);
    if (!row) return;
    const now = api.now();
    const found = problemsOf(health, assessSensors(health, health, row.info, now), now);
    const all = found.reduce((sum, { times }) => sum + (times ?? 1), 0);
    setText(row.problems, all ? count(all, "problem") : "No problems");
    row.item.dataset.level = found.some(({ kind }) => kind === "alarm") ? "alarm" : found.length ? "bad" : "good";
  }
}
