// Builds and updates elements. Texts from site files and devices never become markup.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element: `h("p", {class: "note"}, "text", other)`. */
export function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/** A shape that a level colours; a text beside it says the same. */
export const shape = () => h("span", { class: "shape", "aria-hidden": "true" });

export function $(id) {
  return document.getElementById(id);
}

/** Sets the text of an element, only if it changes: a screen reader would read it again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replaces the children of an element where they differ: a screen reader would lose its place. */
export function fill(element, children) {
  const old = [...element.children];
  const same = children.length === old.length && children.every((one, k) => one.isEqualNode(old[k]));
  if (!same) element.replaceChildren(...children);
}

/** Shows or hides an element, for the keyboard too. */
export function setVisible(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

/** Whether the dark theme is on: chosen, or that of the system. */
export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

let pixels = 0; // for one task: to ask costs a layout

/** Pixels for each pixel of an ordinary screen: symbols grow with the text. */
export function unit() {
  if (!pixels) setTimeout(() => (pixels = 0));
  pixels ||= parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  return pixels;
}
