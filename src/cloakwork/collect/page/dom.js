// Elements without markup in strings: what a site file or a device says is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
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
  return fill(document.createElement(tag), attributes, children);
}

/** The same for a drawing. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** The element with this id, which index.html has. */
export function $(id) {
  return document.getElementById(id);
}

/** Replaces what an element says, only if it says something else: a screen reader would read it again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows or hides; what is hidden cannot be reached by keyboard either. */
export function shown(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

/** Whether the person asked for less motion. */
export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Calls `draw(width, height)` now and whenever the element gets another size. */
export function onResize(element, draw) {
  let last = "";
  const watch = new ResizeObserver(() => {
    const size = `${element.clientWidth} ${element.clientHeight}`;
    if (size === last || !element.clientWidth) return;
    last = size;
    draw(element.clientWidth, element.clientHeight);
  });
  watch.observe(element);
}

/** How many pixels stand for one on a screen of usual size: marks grow with the text. */
export function unit() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}
