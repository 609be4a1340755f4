// The map: areas, cells or points, or, where nothing is known of the place, units by rank with
// their intervals. The base is drawn once and kept; what is picked is drawn over it.

const COLOURED = [
  "mean",
  "lower",
  "upper",
  "width",
  "exceeds",
  "entropy",
  "worth",
  "asked",
  "shrinkage",
  "distance",
  "score",
];

class UnitMap {
  constructor(canvas, pick) {
    this.canvas = canvas;
    this.pick = pick;
    this.kind = DATA.map.kind;
    this.key = "mean";
    this.view = { scale: 1, x: 0, y: 0 };
    this.base = document.createElement("canvas");
    if (this.kind === "areas") this.readAreas();
    else if (this.kind === "points") this.points = unpack(DATA.map.points);
    if (this.kind === "ranked") byId("zoom").remove();
    else this.listenZoom();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  readAreas() {
    this.starts = unpack(DATA.map.starts);
    this.rings = unpack(DATA.map.rings);
    this.corners = unpack(DATA.map.points);
    this.boxes = new Uint16Array(4 * UNITS);
    for (let unit = 0; unit < UNITS; unit++) {
      let [x0, y0, x1, y1] = [65535, 65535, 0, 0];
      for (let i = this.rings[this.starts[unit]]; i < this.rings[this.starts[unit + 1]]; i++) {
        const x = this.corners[2 * i];
        const y = this.corners[2 * i + 1];
        x0 = Math.min(x0, x);
        y0 = Math.min(y0, y);
        x1 = Math.max(x1, x);
        y1 = Math.max(y1, y);
      }
      this.boxes.set([x0, y0, x1, y1], 4 * unit);
    }
  }

  resize() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    const most = Math.min(560, Math.max(300, window.innerHeight * 0.7));
    if (this.kind === "ranked") {
      this.height = 300;
    } else {
      const [across, down] = DATA.map.size;
      this.unit = Math.min(width / across, most / down);
      this.left = (width - this.unit * across) / 2;
      this.height = Math.max(120, this.unit * down);
    }
    this.draw();
  }

  colourBy(key) {
    this.key = key;
    const column = COLUMNS.get(key);
    this.values = column.values();
    [this.low, this.high] =
      column.format === "share" && key === "exceeds" ? [0, 1] : limits(this.values);
    const asked = column.name;
    const missing = this.values.reduce((sum, v) => sum + !Number.isFinite(v), 0);
    this.canvas.setAttribute(
      "aria-label",
      `${UNITS} units coloured by ${asked}, from ${FORMATS[column.format](this.low)} to ` +
        `${FORMATS[column.format](this.high)}${missing ? `; ${missing} have no value` : ""}. ` +
        "The table below holds the same numbers.",
    );
    this.legend(column, missing);
    this.draw();
  }

  legend(column, missing) {
    const form = FORMATS[column.format];
    const id = "viridis";
    const stops = STOPS.map((c, i) =>
      svg("stop", { offset: i / (STOPS.length - 1), "stop-color": `rgb(${c.join(" ")})` }),
    );
    const known = Array.from(this.values).filter(Number.isFinite);
    const under = known.some((v) => v < this.low) ? "≤ " : "";
    const over = known.some((v) => v > this.high) ? "≥ " : "";
    const across = room();
    const bar = Math.round(across * (missing ? 0.6 : 0.75));
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${across} 34`, "aria-hidden": "true" },
      svg("defs", {}, svg("linearGradient", { id }, ...stops)),
      svg("rect", { x: 0, y: 0, width: bar, height: 12, fill: `url(#${id})` }),
      svg("text", { x: 0, y: 28 }, under + form(this.low)),
      svg("text", { x: bar / 2, y: 28, "text-anchor": "middle" }, form((this.low + this.high) / 2)),
      svg("text", { x: bar, y: 28, "text-anchor": "end" }, over + form(this.high)),
    );
    if (missing) {
      picture.append(
        svg("rect", { x: bar + 14, y: 0, width: 12, height: 12, fill: "var(--missing)" }),
        svg("text", { x: bar + 31, y: 11 }, `no value (${missing.toLocaleString("en")})`),
      );
    }
    put("legend", picture);
  }

  // --- Drawing ---

  draw() {
    if (!this.width || !this.values) return;
    const context = sharpen(this.base, this.width, this.height);
    context.clearRect(0, 0, this.width, this.height);
    if (this.kind === "ranked") this.drawRanked(context);
    else this.drawPlaces(context);
    this.show();
  }

  fillOf(unit, missing) {
    const value = this.values[unit];
    return Number.isFinite(value) ? PALETTE[shade(value, this.low, this.high)] : missing;
  }

  drawPlaces(context) {
    const missing = colour("missing");
    this.enter(context);
    context.lineWidth = 0.6 / this.view.scale;
    for (let unit = 0; unit < UNITS; unit++) {
      context.fillStyle = this.fillOf(unit, missing);
      if (this.kind === "areas") {
        this.trace(context, unit);
        context.fill("evenodd");
        context.strokeStyle = context.fillStyle; // no seams between neighbours
        context.stroke();
      } else {
        this.drawPoint(context, unit);
      }
    }
  }

  enter(context) {
    const { scale, x, y } = this.view;
    context.translate(x, y);
    context.scale(scale, scale);
    context.translate(this.left, 0);
  }

  trace(context, unit) {
    const per = this.unit / 65535;
    context.beginPath();
    for (let ring = this.starts[unit]; ring < this.starts[unit + 1]; ring++) {
      for (let i = this.rings[ring]; i < this.rings[ring + 1]; i++) {
        const x = this.corners[2 * i] * per;
        const y = this.corners[2 * i + 1] * per;
        if (i === this.rings[ring]) context.moveTo(x, y);
        else context.lineTo(x, y);
      }
      context.closePath();
    }
  }

  radius() {
    return (
      Math.max(1.6, Math.min(9, 0.35 * Math.sqrt((this.width * this.height) / UNITS))) /
      Math.sqrt(this.view.scale)
    );
  }

  drawPoint(context, unit) {
    const x = this.points[2 * unit] * this.unit;
    const y = this.points[2 * unit + 1] * this.unit;
    if (DATA.map.cell) {
      const [w, h] = DATA.map.cell.map((side) => side * this.unit);
      context.fillRect(x - w / 2 - 0.2, y - h / 2 - 0.2, w + 0.4, h + 0.4);
    } else {
      context.beginPath();
      context.arc(x, y, this.radius(), 0, 7);
      context.fill();
    }
  }

  drawRanked(context) {
    const mean = COLUMNS.get("mean").values();
    const lower = COLUMNS.get("lower").values();
    const upper = COLUMNS.get("upper").values();
    if (!this.order) {
      this.order = Uint32Array.from(mean.keys()).sort((a, b) => mean[a] - mean[b]);
      this.rank = new Uint32Array(UNITS);
      this.order.forEach((unit, at) => (this.rank[unit] = at));
      this.span = [Math.min(...limits(lower)), Math.max(...limits(upper))];
    }
    const [low, high] = this.span;
    const y = (value) => 8 + (this.height - 24) * (1 - (value - low) / (high - low));
    this.y = y;
    context.font = "12px system-ui, sans-serif";
    for (const tick of ticks(low, high)) {
      context.fillStyle = colour("line");
      context.fillRect(48, y(tick), this.width - 48, 1);
      context.fillStyle = colour("soft");
      context.fillText(theta(tick), 0, y(tick) + 4);
    }
    context.lineWidth = Math.max(0.5, Math.min(6, (0.6 * (this.width - 56)) / UNITS));
    for (let at = 0; at < UNITS; at++) {
      const unit = this.order[at];
      context.strokeStyle = this.fillOf(unit, colour("missing"));
      context.beginPath();
      context.moveTo(this.across(at), y(lower[unit]));
      context.lineTo(this.across(at), y(upper[unit]));
      context.stroke();
    }
    context.fillStyle = colour("ink");
    const size = Math.max(1, Math.min(4, context.lineWidth));
    for (let at = 0; at < UNITS; at++) {
      context.fillRect(this.across(at) - size / 2, y(mean[this.order[at]]) - size / 2, size, size);
    }
  }

  across(rank) {
    return 52 + ((rank + 0.5) * (this.width - 56)) / UNITS;
  }

  // The base, and over it what is picked.
  show() {
    const context = sharpen(this.canvas, this.width, this.height);
    context.clearRect(0, 0, this.width, this.height);
    context.drawImage(this.base, 0, 0, this.width, this.height);
    const unit = this.picked;
    if (unit === undefined) return;
    context.strokeStyle = colour("pick");
    const lines = [
      ["#ffffff", 6],
      ["#c92a2a", 3],
    ];
    if (this.kind === "ranked") {
      context.fillStyle = colour("pick");
      const at = this.across(this.rank[unit]);
      context.fillRect(
        at - 1.5,
        this.y(valueOf("upper", unit)),
        3,
        this.y(valueOf("lower", unit)) - this.y(valueOf("upper", unit)),
      );
      context.beginPath();
      context.arc(at, this.y(valueOf("mean", unit)), 5, 0, 7);
      context.fill();
      return;
    }
    this.enter(context);
    for (const [style, width] of lines) {
      context.strokeStyle = style;
      context.lineWidth = width / this.view.scale;
      if (this.kind === "areas") {
        this.trace(context, unit);
      } else {
        const x = this.points[2 * unit] * this.unit;
        const y = this.points[2 * unit + 1] * this.unit;
        const half = DATA.map.cell ? (Math.max(...DATA.map.cell) * this.unit) / 2 : this.radius();
        context.beginPath();
        context.arc(x, y, half + 4 / this.view.scale, 0, 7);
      }
      context.stroke();
    }
  }

  select(unit) {
    this.picked = unit;
    if (this.width && this.values) this.show();
  }

  // --- Pointing ---

  unitAt(event) {
    const box = this.canvas.getBoundingClientRect();
    let x = event.clientX - box.left;
    let y = event.clientY - box.top;
    if (this.kind === "ranked") {
      const rank = Math.floor(((x - 52) * UNITS) / (this.width - 56));
      return this.order[Math.max(0, Math.min(UNITS - 1, rank))];
    }
    x = ((x - this.view.x) / this.view.scale - this.left) / this.unit;
    y = (y - this.view.y) / this.view.scale / this.unit;
    return this.kind === "areas" ? this.areaAt(65535 * x, 65535 * y) : this.nearest(x, y);
  }

  areaAt(x, y) {
    for (let unit = 0; unit < UNITS; unit++) {
      const [x0, y0, x1, y1] = this.boxes.subarray(4 * unit, 4 * unit + 4);
      if (x < x0 || x > x1 || y < y0 || y > y1) continue;
      let inside = false;
      for (let ring = this.starts[unit]; ring < this.starts[unit + 1]; ring++) {
        let before = this.rings[ring + 1] - 1;
        for (let i = this.rings[ring]; i < this.rings[ring + 1]; before = i++) {
          const [xi, yi, xj, yj] = [
            this.corners[2 * i],
            this.corners[2 * i + 1],
            this.corners[2 * before],
            this.corners[2 * before + 1],
          ];
          if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
        }
      }
      if (inside) return unit;
    }
    return undefined;
  }

  nearest(x, y) {
    let best;
    let least = (24 / this.unit / this.view.scale) ** 2;
    for (let unit = 0; unit < UNITS; unit++) {
      const off = (this.points[2 * unit] - x) ** 2 + (this.points[2 * unit + 1] - y) ** 2;
      if (off < least) [best, least] = [unit, off];
    }
    return best;
  }

  listen() {
    let from = null;
    let moved = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      from = [event.clientX - this.view.x, event.clientY - this.view.y];
      moved = false;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (from && this.view.scale > 1 && event.buttons) {
        moved =
          moved ||
          Math.hypot(event.clientX - from[0] - this.view.x, event.clientY - from[1] - this.view.y) >
            4;
        if (moved) this.look(this.view.scale, event.clientX - from[0], event.clientY - from[1]);
        return;
      }
      const unit = this.unitAt(event);
      byId("hover").textContent =
        unit === undefined ? "" : `${DATA.labels[unit]}: ${shown(this.key, unit)}`;
    });
    this.canvas.addEventListener("pointerleave", () => (byId("hover").textContent = ""));
    this.canvas.addEventListener("click", (event) => {
      from = null;
      const unit = moved ? undefined : this.unitAt(event);
      if (unit !== undefined) this.pick(unit);
    });
  }

  listenZoom() {
    const by = (factor) => {
      const scale = Math.max(1, Math.min(40, this.view.scale * factor));
      const [x, y] = [this.width / 2, this.height / 2];
      const ratio = scale / this.view.scale;
      this.look(scale, x - (x - this.view.x) * ratio, y - (y - this.view.y) * ratio);
    };
    byId("zoom-in").addEventListener("click", () => by(1.7));
    byId("zoom-out").addEventListener("click", () => by(1 / 1.7));
    byId("zoom-all").addEventListener("click", () => this.look(1, 0, 0));
  }

  look(scale, x, y) {
    const bound = (value, size) => Math.max(size * (1 - scale), Math.min(0, value));
    this.view = { scale, x: bound(x, this.width), y: bound(y, this.height) };
    this.canvas.style.touchAction = scale > 1 ? "none" : "auto";
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }
}
