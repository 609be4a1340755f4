// Elements, colours and axes. Words go in as text, never as markup.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  fill(made, attributes, children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  fill(made, attributes, children);
  return made;
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  for (const child of children) {
    if (child === null || child === undefined) continue;
    made.append(typeof child === "object" ? child : document.createTextNode(String(child)));
  }
}

function byId(id) {
  return document.getElementById(id);
}

function put(id, ...children) {
  byId(id).replaceChildren(...children);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// --- Colours of numbers: viridis, which reads in grey and without red and green -------------------

const STOPS = [
  [68, 1, 84],
  [71, 44, 122],
  [59, 81, 139],
  [44, 113, 142],
  [33, 144, 141],
  [39, 173, 129],
  [92, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
];
const PALETTE = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (STOPS.length - 1);
  const left = Math.min(Math.floor(at), STOPS.length - 2);
  const mixed = STOPS[left].map((c, k) => Math.round(c + (at - left) * (STOPS[left + 1][k] - c)));
  return `rgb(${mixed.join(" ")})`;
});

// Limits that leave out the outermost hundredth on either side.
function limits(values) {
  const known = values.filter((v) => Number.isFinite(v)).sort();
  if (!known.length) return [0, 1];
  const at = (q) => known[Math.round(q * (known.length - 1))];
  let [low, high] = [at(0.01), at(0.99)];
  if (low === high) [low, high] = [known[0], known[known.length - 1]];
  return low === high ? [low, low + (Math.abs(low) || 1)] : [low, high];
}

function shade(value, low, high) {
  return Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
}

// --- Axes ----------------------------------------------------------------------------------------

// About so many round numbers between two.
function ticks(low, high, about = 5) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    found.push(k * step);
  return found;
}

function logTicks(low, high) {
  const steps = high / low > 1000 ? [1] : high / low > 30 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const found = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
    for (const step of steps) found.push(step * 10 ** p);
  }
  const inside = found.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  return inside.length > 1 ? inside : [low, high];
}

// How wide a picture is: as there is room, so that its words keep their size on a phone.
function room() {
  return Math.max(280, Math.min(560, byId("card-body").clientWidth || 560));
}

// A picture with a horizontal axis below: returns where to draw, and how to place a value.
function plot(width, height, low, high, format, title, label, whole = false) {
  const left = 8;
  const right = width - 8;
  const bottom = height - (label ? 36 : 20);
  const x = (value) => left + ((value - low) / (high - low)) * (right - left);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": title,
  });
  picture.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  for (const tick of ticks(low, high).filter((t) => !whole || Number.isInteger(t))) {
    const end = x(tick) > right - 12 ? "end" : x(tick) < left + 12 ? "start" : "middle";
    picture.append(
      svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4 }),
      svg("text", { x: x(tick), y: bottom + 16, "text-anchor": end }, format(tick)),
    );
  }
  if (label) picture.append(svg("text", { x: left, y: height - 4 }, label));
  return { picture, x, bottom, left, right };
}

// Density curves on one axis: [[class, law], …]. The last lie on top.
function curves(named, title, label, mark, height = 190) {
  const width = room();
  const drawn = named.filter(([, law]) => law);
  const [low, high] = range(
    drawn.filter(([name]) => !["prior", "primary"].includes(name)).map(([, law]) => law),
    drawn.filter(([name]) => name === "primary").map(([, law]) => law),
  );
  const { picture, x, bottom } = plot(width, height, low, high, theta, title, label);
  const points = 240;
  const grid = Array.from({ length: points + 1 }, (_, i) => low + ((high - low) * i) / points);
  const heights = drawn.map(([, law]) => grid.map((at) => law.density(at)));
  const inner = (i) => i > points / 40 && i < points - points / 40;
  let top = 0;
  drawn.forEach(([name], k) => {
    if (name === "prior" && drawn.length > 1) return;
    const bounded = heights[k].every(Number.isFinite);
    heights[k].forEach((h, i) => {
      if (Number.isFinite(h) && (bounded || inner(i))) top = Math.max(top, h);
    });
  });
  const y = (h) => bottom - (bottom - 8) * (h > 1.02 * top ? 1.02 : h / (top || 1));
  drawn.forEach(([name], k) => {
    const corners = heights[k].map((h, i) => `${x(grid[i]).toFixed(1)} ${y(h).toFixed(1)}`);
    const path = `M${corners.join("L")}`;
    if (name === "both" || name === "more") {
      const closed = `${path}L${x(high)} ${bottom}L${x(low)} ${bottom}Z`;
      picture.append(svg("path", { class: `area ${name}`, d: closed }));
    }
    picture.append(svg("path", { class: `curve ${name}`, d: path }));
  });
  if (Number.isFinite(mark) && mark >= low && mark <= high) {
    const at = x(mark);
    picture.append(
      svg("path", { class: "mark", d: `M${at} ${bottom - 7}L${at + 6} ${bottom + 4}H${at - 6}Z` }),
    );
  } else if (Number.isFinite(mark)) {
    // Farther out than what is drawn: it points there, and says where that is.
    const beyond = mark > high;
    const [tip, base] = beyond ? [x(high), x(high) - 9] : [x(low), x(low) + 9];
    picture.append(
      svg("path", { class: "mark", d: `M${tip} ${bottom - 12}L${base} ${bottom - 18}V${bottom - 6}Z` }),
      svg(
        "text",
        {
          class: "text-mark",
          x: base + (beyond ? -5 : 5),
          y: bottom - 8,
          "text-anchor": beyond ? "end" : "start",
        },
        theta(mark),
      ),
    );
  }
  return picture;
}

// Where all but a thousandth of each law lies; of shares, all of it unless that is much wider. Laws
// that say little may make it three times as wide on a side, and are cut off there.
function range(laws, vague = []) {
  let low = Math.min(...laws.map((law) => law.quantile(0.001)));
  let high = Math.max(...laws.map((law) => law.quantile(0.999)));
  const more = 2 * (high - low);
  const [least, most] = [low - more, high + more];
  for (const law of vague) {
    low = Math.min(low, Math.max(least, law.quantile(0.001)));
    high = Math.max(high, Math.min(most, law.quantile(0.999)));
  }
  if (laws[0].kind === "beta" && high - low > 0.4) return [0, 1];
  if (laws[0].kind !== "gaussian" && low < 0.25 * (high - low)) low = 0;
  if (laws[0].kind === "beta" && 1 - high < 0.25 * (high - low)) high = 1;
  if (!(high > low)) high = low + (Math.abs(low) || 1) * 1e-3;
  return [low, high];
}

const LEGEND = {
  prior: "prior",
  auxiliary: "auxiliary data",
  primary: "primary data",
  both: "both",
  more: "both and what you add",
};

function keys(names, marked) {
  const list = element("ul", { class: "keys" });
  for (const name of names) {
    const line = svg("line", { class: `curve ${name}`, x1: 0, x2: 28, y1: 5, y2: 5 });
    const sample = svg("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" }, line);
    list.append(element("li", {}, sample, LEGEND[name]));
  }
  if (marked) {
    const shape = svg("path", { class: "mark", d: "M14 0L20 10H8Z" });
    const sample = svg("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" }, shape);
    list.append(element("li", {}, sample, "direct estimate"));
  }
  return list;
}

// A canvas as sharp as the screen, drawn in CSS pixels.
function sharpen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// Around what may be wider than the screen: it can then be scrolled by keyboard, too.
function wide(table) {
  const frame = element("div", { class: "wide" }, table);
  const named = { tabindex: 0, role: "region", "aria-label": table.caption.textContent };
  new ResizeObserver(() => {
    const over = frame.scrollWidth > frame.clientWidth;
    for (const [name, value] of Object.entries(named)) {
      if (over) frame.setAttribute(name, value);
      else frame.removeAttribute(name);
    }
  }).observe(frame);
  return frame;
}

// A plain table of texts: the first column names the rows.
function plainTable(head, rows, caption) {
  return element(
    "table",
    {},
    element("caption", { class: "unseen" }, caption),
    element(
      "thead",
      {},
      element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name))),
    ),
    element(
      "tbody",
      {},
      ...rows.map((row) =>
        element(
          "tr",
          {},
          ...row.map((text, i) => element(i ? "td" : "th", i ? {} : { scope: "row" }, text)),
        ),
      ),
    ),
  );
}
