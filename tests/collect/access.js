// Checks that axe leaves out: words and shapes in drawings, and what has the focus. Each says what is wrong.
(which) => {
  const visible = (el) => el.checkVisibility({ visibilityProperty: true }) && el.getClientRects().length > 0;
  const told = (el) => `<${el.tagName.toLowerCase()} id=${el.id} class=${el.getAttribute("class") ?? ""}>`;

  function contrast() {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
    const ground = (el) => {
      const layers = [];
      for (let at = el; at; at = at.parentElement) {
        const colour = rgba(getComputedStyle(at).backgroundColor);
        layers.push(colour);
        if (colour[3] === 1) break;
      }
      return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((v) =>
        v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ratio = (a, b) => {
      const [high, low] = [light(a), light(b)].sort((p, q) => q - p);
      return (high + 0.05) / (low + 0.05);
    };
    const wrong = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const el = node.parentElement;
      if (!el.closest(".drawing") || !node.textContent.trim() || !visible(el)) continue;
      const style = getComputedStyle(el);
      let below = ground(el.closest("div"));
      const box = el.previousElementSibling; // words of a mark stand on their own shape
      if (el.matches(".mark text") && box) below = over(rgba(getComputedStyle(box).fill), below);
      const colour = over(rgba(style.fill), below);
      const found = ratio(colour, below);
      if (found < 4.5) wrong.push(`${found.toFixed(2)}: ${told(el)} ${node.textContent.trim().slice(0, 40)}`);
    }
    // shapes that carry meaning, against what they lie on
    const shapes = {
      ".state .dot": "backgroundColor",
      "td .shape": "backgroundColor",
      ".wall": "stroke",
      ".mark circle": "fill",
      ".lane .occupied": "fill",
      ".needle": "backgroundColor",
      ".sensor.good circle": "fill",
      ".sensor.bad path": "stroke",
      ".sensor.wait circle": "stroke",
      ".sensor.alarm path": "fill",
      ".truth": "stroke",
      ".scale": "stroke",
    };
    const floor = document.querySelector(".drawing .floor");
    for (const [selector, property] of Object.entries(shapes)) {
      for (const el of [...document.querySelectorAll(selector)].filter(visible).slice(0, 3)) {
        const colour = rgba(getComputedStyle(el)[property]);
        if (colour[3] < 0.5) continue;
        const below =
          el.closest(".drawing") && floor ? rgba(getComputedStyle(floor).fill) : ground(el.closest("div, p, td, li"));
        const found = ratio(colour, below);
        if (found < 3) wrong.push(`${found.toFixed(2)}: shape ${selector}`);
      }
    }
    return [...new Set(wrong)];
  }

  function focus() {
    const el = document.activeElement;
    const style = getComputedStyle(el);
    const box = el.getBoundingClientRect();
    return {
      id: el.id,
      tag: el.tagName.toLowerCase(),
      text: (el.textContent || "").trim().slice(0, 30),
      ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
      seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
  }

  return { contrast, focus }[which]();
};
