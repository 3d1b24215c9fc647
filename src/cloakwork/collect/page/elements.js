// Builds and updates elements. Texts from site files and devices never become markup.

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

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** The element of index.html with this id. */
export function $(id) {
  return document.getElementById(id);
}

/** Sets the text of an element, only if it changes: a screen reader would read it again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows or hides an element, for the keyboard too. */
export function setVisible(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

/** Whether the person prefers less motion. */
export function prefersLessMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Calls `draw(width, height)` now and whenever the element is resized. */
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

/** Pixels for each pixel of an ordinary screen: symbols grow with the text. */
export function unit() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}
