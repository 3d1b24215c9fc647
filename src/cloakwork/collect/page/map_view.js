// A map of a site: chooses its drawing and fits it to the page.

import { $, h, unit } from "./elements.js";
import { FloorDrawing } from "./floor_drawing.js";
import { topOf } from "./heat_layer.js";
import { LineDrawing } from "./line_drawing.js";
import { MAX_NODES, NetworkDrawing } from "./network_drawing.js";

const SHARE = 0.7; // of the screen's height, at most
const LEAST = 260;
const NOTHING = { map: null, rooms: [], marks: [], trails: [], truth: [], sensors: [], numbers: false };

/** A view in the element with this id; none for a site of bits and a large network, which have no map. */
export function mapViewIn(id, geometry, label) {
  const large = !geometry.places.length && !(geometry.labels?.length <= MAX_NODES);
  return geometry.kind === "bits" || large ? null : new MapView($(id), geometry, label);
}

class MapView {
  constructor(holder, geometry, label) {
    const Drawing = [NetworkDrawing, LineDrawing, FloorDrawing][geometry.places[0]?.length ?? 0];
    Object.assign(this, { holder, label, drawing: new Drawing(geometry), frame: NOTHING });
    this.box = h("div", { class: "drawing", role: "img", "aria-label": label }, ...this.drawing.elements);
    holder.replaceChildren(this.box);
    this._watch = new ResizeObserver(() => this._fit());
    this._watch.observe(holder);
  }

  close() {
    this._watch.disconnect();
    this.holder.replaceChildren();
  }

  _fit() {
    const width = this.holder.clientWidth;
    const most = Math.max(LEAST * unit(), SHARE * innerHeight);
    const height = Math.round(Math.min(this.drawing.heightFor(width), most));
    if (!width || this._size === `${width} ${height}`) return;
    this._size = `${width} ${height}`;
    this.box.style.height = `${height}px`;
    this.drawing.resize(width, height);
    this.repaint();
  }

  /** Draws again with the colours of the current theme. */
  repaint() {
    if (this._size) this.drawing.draw({ ...this.frame, top: this.frame.map ? topOf(this.frame.map) : 1 });
  }

  show(frame, label) {
    this.frame = { ...NOTHING, ...frame };
    this.box.setAttribute("aria-label", label ?? this.label);
    this.repaint();
  }
}
