// Checks of a page that a person with a screen reader, a keyboard or weak eyes would want; each says what is wrong.
(which) => {
  const name = (el) => {
    const by = el.getAttribute("aria-labelledby");
    if (by)
      return by
        .split(" ")
        .map((id) => document.getElementById(id)?.textContent ?? "")
        .join(" ")
        .trim();
    if (el.getAttribute("aria-label")) return el.getAttribute("aria-label").trim();
    if (el.labels?.length)
      return [...el.labels]
        .map((label) => label.textContent)
        .join(" ")
        .trim();
    if (el.tagName === "IMG") return el.getAttribute("alt") ?? "";
    return el.textContent.trim();
  };
  const visible = (el) => el.checkVisibility({ visibilityProperty: true }) && el.getClientRects().length > 0;
  const told = (el) => `<${el.tagName.toLowerCase()} id=${el.id} class=${el.getAttribute("class") ?? ""}>`;

  function structure() {
    const wrong = [];
    const all = (selector) => [...document.querySelectorAll(selector)].filter(visible);
    const controls =
      "button, select, input, summary, [tabindex='0'], [role=img], [role=meter], [role=region], [role=group]";
    for (const el of all(controls)) if (!name(el)) wrong.push(`no name: ${told(el)}`);
    for (const el of all("img")) if (!el.hasAttribute("alt")) wrong.push(`no alt: ${told(el)}`);
    for (const el of all("svg")) {
      if (!el.closest("[aria-hidden=true], [role=img]")) wrong.push(`neither named nor hidden: ${told(el)}`);
    }
    for (const el of all("table")) {
      if (!el.caption) wrong.push(`no caption: ${told(el)}`);
      for (const head of el.querySelectorAll("th")) if (!head.scope) wrong.push(`no scope: ${told(head)}`);
    }
    for (const el of all("section")) {
      if (!document.getElementById(el.getAttribute("aria-labelledby"))) wrong.push(`no title: ${told(el)}`);
    }
    const ids = [...document.querySelectorAll("[id]")].map((el) => el.id);
    for (const id of new Set(ids)) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`twice: #${id}`);
    for (const el of document.querySelectorAll("[aria-labelledby], [aria-describedby], label[for]")) {
      for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
        for (const id of (el.getAttribute(attribute) ?? "").split(" ").filter(Boolean)) {
          if (!document.getElementById(id)) wrong.push(`${attribute} points nowhere: ${told(el)}`);
        }
      }
    }
    let before = 0;
    for (const el of all("h1, h2, h3, h4")) {
      const level = Number(el.tagName[1]);
      if (level > before + 1) wrong.push(`a level of headings is left out: ${told(el)}`);
      before = level;
    }
    if (all("h1").length !== 1) wrong.push("not exactly one h1");
    if (all("main").length !== 1) wrong.push("not exactly one main");
    if (!document.documentElement.lang) wrong.push("no language");
    if (!document.title) wrong.push("no title");
    for (const el of all("[aria-hidden=true]")) {
      if (el.querySelector("a, button, input, select, [tabindex='0']"))
        wrong.push(`hidden but in the tab order: ${told(el)}`);
    }
    for (const el of all("button, select, input, summary")) {
      const box = (el.closest("label") ?? el).getBoundingClientRect();
      if (Math.min(box.width, box.height) < 24) wrong.push(`smaller than 24 pixels: ${told(el)}`);
    }
    return wrong;
  }

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
      if (
        !node.textContent.trim() ||
        !visible(el) ||
        el.closest(".hidden, .skip, noscript, :disabled, option, title")
      )
        continue;
      const style = getComputedStyle(el);
      const drawn = el.namespaceURI.endsWith("svg");
      let below = ground(drawn ? el.closest("div") : el);
      if (drawn) {
        const box = el.previousElementSibling; // words of a mark stand on their own shape
        if (el.matches(".mark text") && box) below = over(rgba(getComputedStyle(box).fill), below);
      }
      const colour = over(rgba(drawn ? style.fill : style.color), below);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const found = ratio(colour, below);
      if (found < (large ? 3 : 4.5))
        wrong.push(`${found.toFixed(2)}: ${told(el)} ${node.textContent.trim().slice(0, 40)}`);
    }
    // shapes that carry meaning, against what they lie on
    const shapes = {
      ".state .dot": "backgroundColor",
      "td .shape": "backgroundColor",
      ".meter span": "backgroundColor",
      ".wall": "stroke",
      ".vicinity": "stroke",
      ".sensor.good circle": "fill",
      ".sensor.bad path": "stroke",
      ".sensor.wait circle": "stroke",
      ".sensor.alarm path": "fill",
      ".truth path": "stroke",
      ".curve": "stroke",
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

  return { structure, contrast, focus }[which]();
};
