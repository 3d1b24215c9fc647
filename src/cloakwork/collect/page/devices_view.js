// Devices: the state of each, what to do, and what else is wrong.

import * as api from "./api.js";
import { $, fill, h, setText, setVisible, shape } from "./elements.js";
import { ago, count } from "./formats.js";
import { mapViewIn } from "./map_view.js";
import { problemsOf } from "./problems.js";

const MAX_ROWS = 200;
const LEVELS = ["alarm", "bad", "unknown", "wait", "good"];
const FINE = ["wait", "good"];
const NAMES = new Intl.Collator("en", { numeric: true });

export class DevicesView {
  constructor(data) {
    this.data = data;
    this.mapView = mapViewIn("device-plan", data.geometry, "Map of the devices");
    setVisible($("device-map"), this.mapView !== null);
  }

  close() {
    this.mapView?.close();
  }

  draw(devices) {
    const { health } = this.data;
    const now = api.now();
    const having = (level) => devices.filter((device) => device.level === level).length;
    const parts = { alarm: "with an alarm", bad: "with a problem", wait: "waiting as planned", unknown: "not heard" };
    const others = Object.entries(parts).filter(([level]) => having(level)).map(([level, text]) => `${having(level)} ${text}`);
    setText($("devices-summary"), `${[`${having("good")} of ${count(devices.length, "device")} working`, ...others].join(", ")}.`);
    const problems = health ? problemsOf(health, now) : [];
    const item = ({ kind, what, who }) => h("li", { "data-kind": kind }, h("span", null, what), h("span", { class: "quiet" }, who));
    fill($("problems"), problems.map(item));
    setVisible($("problems-card"), problems.length > 0);
    const text = $("filter").value.trim().toLowerCase();
    const wanted = devices.filter(({ id, text: state, level }) => `${id} ${state}`.toLowerCase().includes(text) && !($("only-bad").checked && FINE.includes(level)));
    const rows = wanted.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) || NAMES.compare(a.id, b.id));
    const more = rows.length - MAX_ROWS;
    const last = h("tr", null, h("td", { colspan: 4 }, `${count(more, "more device")}: use Find.`));
    fill($("devices-body"), [...rows.slice(0, MAX_ROWS).map((device) => row(device, now)), ...(more > 0 ? [last] : [])]);
    this.mapView?.show({ sensors: devices });
  }
}

function row({ id, level, text, act, last_reading: last }, now) {
  const cells = [h("td", null, shape(), text), h("td", null, last === null ? "none" : ago(last, now)), h("td", null, act)];
  return h("tr", { "data-level": level }, h("th", { scope: "row" }, id), ...cells);
}
