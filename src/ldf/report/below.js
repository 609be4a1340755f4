// Below the map: whether to believe it, how far direct estimates are drawn, what was learned, and
// what the model is.

function section(title, wide, ...children) {
  const id = `section-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return element("section", { class: wide ? "panel full" : "panel", "aria-labelledby": id }, element("h2", { id }, title), ...children);
}

function note(text) {
  return element("p", { class: "note" }, text);
}

// --- Held-out scores and calibration -------------------------------------------------------------

function scoresSection() {
  const { checks } = DATA;
  const parts = [];
  if (checks.models.length) {
    const [first] = checks.models;
    const rows = [...checks.models]
      .sort((a, b) => b.score - a.score)
      .map((own) => [
        own.name,
        own.score === null ? "–" : own.score.toFixed(3),
        own.name === first.name || own.behind === null ? "" : `${own.behind.toFixed(3)} ± ${number(own.error)}`,
        own.held === null ? "–" : `${share(own.held)} of ${share(own.expected)}`,
      ]);
    parts.push(
      wide(plainTable(["model", "log score", `minus ${first.name}`, "90 % sets hold"], rows, "Held-out scores by model")),
      note(
        `${checks.units.toLocaleString("en")} units, each held out once in ${checks.folds} folds; mean log score a unit, ` +
          "more is better. The last column is how many held-out units are in their 90 % sets, beside what these sets, " +
          "being of whole numbers where data are, really hold.",
      ),
    );
  } else if (checks.score === null) {
    parts.push(note("There are no primary data in this report to compare with."));
  } else {
    parts.push(element("p", {}, `Mean held-out log score: ${checks.score.toFixed(3)} a unit, of ${checks.units.toLocaleString("en")} units.`));
  }
  if (checks.advice) parts.push(note(checks.advice));
  return section("Held-out scores", false, ...parts);
}

function calibrationSection() {
  const { checks } = DATA;
  if (!checks.pit) return section("Calibration", false, note("Nothing was predicted here that could be compared with whole data."));
  const rows = checks.coverage.map((own) => [
    `${number(100 * own.mass)} %`,
    share(own.expected),
    share(own.observed),
    own.standard_error === null ? "–" : `± ${number(100 * own.standard_error)} points`,
  ]);
  const total = checks.pit.reduce((sum, n) => sum + n, 0);
  const even = total / checks.pit.length;
  const top = Math.max(...checks.pit, 1.6 * even);
  const told = `Histogram of the probability integral transform of ${total} held-out units in ${checks.pit.length} bins; even bars mean calibrated predictions.`;
  const { picture, x, bottom, left, right } = plot(560, 150, 0, 1, (v) => String(round(v, 2)), told, "where the observed value lies in its prediction (PIT)");
  const y = (n) => bottom - ((bottom - 6) * n) / top;
  const wide = 1 / checks.pit.length;
  checks.pit.forEach((n, i) => {
    picture.append(svg("rect", { class: "bar", x: x(i * wide) + 1, y: y(n), width: x(wide) - x(0) - 2, height: bottom - y(n), opacity: 0.8 }));
  });
  const off = 2 * Math.sqrt(even * (1 - wide));
  picture.append(
    svg("rect", { x: left, width: right - left, y: y(even + off), height: y(Math.max(0, even - off)) - y(even + off), fill: "var(--pick)", opacity: 0.2 }),
    svg("line", { x1: left, x2: right, y1: y(even), y2: y(even), stroke: "var(--pick)", "stroke-width": 2 }),
  );
  return section(
    "Calibration",
    false,
    picture,
    note(`The line is where calibrated bars stand, the band two standard errors. ${checks.uniform.test} test: p = ${number(checks.uniform.p)}.`),
    wide(plainTable(["sets of", "hold by the model", "held", "standard error"], rows, "Coverage of held-out units")),
  );
}

// --- Scatters ------------------------------------------------------------------------------------

class Scatter {
  constructor(x, y, options, pick) {
    Object.assign(this, { x, y, options });
    this.canvas = element("canvas", { role: "img", "aria-label": options.title });
    this.base = document.createElement("canvas");
    this.frame = element("div", {}, this.canvas);
    const known = (values, log) => values.filter((v) => Number.isFinite(v) && (!log || v > 0));
    this.ranges = options.same
      ? [0, 1].map(() => ends([...known(x, options.logX), ...known(y, options.logX)]))
      : [ends(known(x, options.logX)), ends(known(y))];
    this.canvas.addEventListener("click", (event) => {
      const unit = this.nearest(event);
      if (unit !== undefined) pick(unit);
    });
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  resize() {
    const width = this.frame.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.height = Math.min(380, Math.max(260, 0.62 * width));
    this.draw();
  }

  at(value, axis) {
    const [low, high] = this.ranges[axis];
    const log = axis === 0 && this.options.logX;
    const part = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return axis === 0 ? 56 + part * (this.width - 68) : this.height - 40 - part * (this.height - 52);
  }

  draw() {
    if (!this.width) return;
    const context = sharpen(this.base, this.width, this.height);
    const { options } = this;
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colour("soft");
    const [[x0, x1], [y0, y1]] = this.ranges;
    context.textAlign = "center";
    for (const tick of options.logX ? logTicks(x0, x1) : ticks(x0, x1)) {
      context.fillText((options.logX ? number : theta)(tick), this.at(tick, 0), this.height - 24);
      context.fillRect(this.at(tick, 0), this.height - 40, 1, 4);
    }
    context.fillText(options.xName, 56 + (this.width - 68) / 2, this.height - 6, this.width - 68);
    context.textAlign = "right";
    for (const tick of ticks(y0, y1)) {
      context.fillText(theta(tick), 50, this.at(tick, 1) + 4);
      context.save();
      context.fillStyle = colour("line");
      context.fillRect(56, this.at(tick, 1), this.width - 68, 1);
      context.restore();
    }
    if (options.same) {
      context.strokeStyle = colour("soft");
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(this.at(x0, 0), this.at(x0, 1));
      context.lineTo(this.at(x1, 0), this.at(x1, 1));
      context.stroke();
      context.setLineDash([]);
    }
    const styles = [colour("accent"), colour("auxiliary")];
    context.globalAlpha = UNITS > 2000 ? 0.4 : 0.6;
    for (let unit = 0; unit < UNITS; unit++) {
      if (!this.has(unit)) continue;
      context.fillStyle = styles[options.group ? options.group[unit] : 0];
      context.beginPath();
      context.arc(this.at(this.x[unit], 0), this.at(this.y[unit], 1), options.size ? options.size(unit) : 2.5, 0, 7);
      context.fill();
    }
    this.show();
  }

  has(unit) {
    return Number.isFinite(this.x[unit]) && Number.isFinite(this.y[unit]) && (!this.options.logX || this.x[unit] > 0);
  }

  show() {
    const context = sharpen(this.canvas, this.width, this.height);
    context.drawImage(this.base, 0, 0, this.width, this.height);
    if (this.picked === undefined || !this.has(this.picked)) return;
    for (const [style, width] of [[colour("panel"), 6], [colour("pick"), 3]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      context.arc(this.at(this.x[this.picked], 0), this.at(this.y[this.picked], 1), 7, 0, 7);
      context.stroke();
    }
  }

  select(unit) {
    this.picked = unit;
    if (this.width) this.show();
  }

  nearest(event) {
    const box = this.canvas.getBoundingClientRect();
    let best;
    let least = 20 ** 2;
    for (let unit = 0; unit < UNITS; unit++) {
      if (!this.has(unit)) continue;
      const off = (this.at(this.x[unit], 0) + box.left - event.clientX) ** 2 + (this.at(this.y[unit], 1) + box.top - event.clientY) ** 2;
      if (off < least) [best, least] = [unit, off];
    }
    return best;
  }
}

function ends(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low < high ? [low, high] : Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
}

function scatters(pick) {
  const values = (key) => COLUMNS.get(key).values();
  const asked = values("asked");
  const [, most] = limits(asked);
  const made = [];
  const one = new Scatter(values("direct"), values("mean"), {
    same: true,
    xName: "direct estimate, from primary data alone",
    title: "Direct estimates against model estimates of all units with primary data",
    size: (unit) => 1.5 + 4.5 * Math.sqrt(Math.min(1, asked[unit] / most)),
  }, pick);
  const shrinkage = Array.from(values("shrinkage")).filter(Number.isFinite);
  const mean = shrinkage.reduce((sum, own) => sum + own, 0) / shrinkage.length;
  const direct = shrinkage.length
    ? [
        note(`Up: the model's estimate, the posterior mean. On the broken line both agree; larger dots have more primary data, and are drawn less towards the others. On average ${share(mean)} of the weight is on prior and auxiliary data.`),
        one.frame,
      ]
    : [note("No unit has primary data.")];
  made.push(one);
  const other = new Scatter(values("worth"), values("says"), {
    logX: true,
    xName: `auxiliary data are worth so many ${DATA.words.unit}`,
    title: "What auxiliary data are worth, and what they speak for, of all units",
    group: IS_FAR,
  }, pick);
  made.push(other);
  const far = IS_FAR.reduce((sum, own) => sum + own, 0);
  const learned = [
    note(`Across: how much the auxiliary data of a unit are worth. Up: the ${DATA.words.theta} that they speak for.${far ? " Orange: far from the training data." : ""}`),
    other.frame,
  ];
  return { made, sections: [section("Direct and model estimates", false, ...direct), section("What was learned", false, ...learned)] };
}

// --- What is missing, and what is far -------------------------------------------------------------

function gapsSection() {
  const seen = SEEN.reduce((sum, own) => sum + own, 0);
  const far = IS_FAR.reduce((sum, own) => sum + own, 0);
  let none = 0;
  COLUMNS.get("asked").values().forEach((n) => (none += n === 0));
  const button = (text, which) => {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", () => {
      byId("which").value = which;
      byId("which").dispatchEvent(new Event("change"));
      byId("table-title").focus();
      byId("table-title").scrollIntoView();
    });
    return made;
  };
  const missing = UNITS - seen;
  return section(
    "Where data are missing, and what is far",
    true,
    element("p", {}, `${missing.toLocaleString("en")} of ${UNITS.toLocaleString("en")} units have no primary data${none ? `, and ${none.toLocaleString("en")} more asked nobody` : ""}. `, missing ? button("List them", "unseen") : null),
    element("p", {}, `${far.toLocaleString("en")} units are far from the training data. `, far ? button("List these", "far") : null),
    note(DATA.card.far),
    note("On the map, colour by primary data to see where there are none, or by distance."),
  );
}

// --- The model card --------------------------------------------------------------------------------

function cardSection() {
  const parts = DATA.card.sections.map((own) =>
    element("div", {}, element("h3", {}, own.title), element("ul", {}, ...own.lines.map((line) => element("li", {}, line)))),
  );
  const rows = DATA.card.gather.map((own) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, own.item),
      element("td", { class: "wrap" }, own.asks),
      element("td", { class: "wrap" }, own.answer),
    ),
  );
  const table = element(
    "table",
    {},
    element("caption", { class: "unseen" }, "GATHER reporting items"),
    element("thead", {}, element("tr", {}, ...["item", "asks for", "in this report"].map((name, i) => element("th", { scope: "col", class: i ? "wrap" : "" }, name)))),
    element("tbody", {}, ...rows),
  );
  return section(
    "Model card",
    true,
    element("div", { class: "columns" }, ...parts),
    element("details", {}, element("summary", {}, "GATHER: what reports of estimates should tell"), wide(table)),
  );
}
