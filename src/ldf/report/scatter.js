// Two numbers of every unit against each other, linked with the map and the table.

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
    return axis === 0
      ? 56 + part * (this.width - 68)
      : this.height - 40 - part * (this.height - 52);
  }

  draw() {
    if (!this.width) return;
    const context = sharpen(this.base, this.width, this.height);
    const { options } = this;
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colour("soft");
    const [[x0, x1], [y0, y1]] = this.ranges;
    context.textAlign = "center";
    let free = 0; // where the next word has room
    for (const tick of options.logX ? logTicks(x0, x1) : ticks(x0, x1)) {
      const word = (options.logX ? number : theta)(tick);
      const [at, half] = [this.at(tick, 0), context.measureText(word).width / 2];
      context.fillRect(at, this.height - 40, 1, 4);
      if (at - half < free) continue;
      context.fillText(word, at, this.height - 24);
      free = at + half + 8;
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
      context.arc(
        this.at(this.x[unit], 0),
        this.at(this.y[unit], 1),
        options.size ? options.size(unit) : 2.5,
        0,
        7,
      );
      context.fill();
    }
    this.show();
  }

  has(unit) {
    return (
      Number.isFinite(this.x[unit]) &&
      Number.isFinite(this.y[unit]) &&
      (!this.options.logX || this.x[unit] > 0)
    );
  }

  show() {
    const context = sharpen(this.canvas, this.width, this.height);
    context.drawImage(this.base, 0, 0, this.width, this.height);
    if (this.picked === undefined || !this.has(this.picked)) return;
    for (const [style, width] of [
      [colour("panel"), 6],
      [colour("pick"), 3],
    ]) {
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
      const off =
        (this.at(this.x[unit], 0) + box.left - event.clientX) ** 2 +
        (this.at(this.y[unit], 1) + box.top - event.clientY) ** 2;
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
  const one = new Scatter(
    values("direct"),
    values("mean"),
    {
      same: true,
      xName: "direct estimate, from primary data alone",
      title: "Direct estimates against model estimates of all units with primary data",
      size: (unit) => 1.5 + 4.5 * Math.sqrt(Math.min(1, asked[unit] / most)),
    },
    pick,
  );
  const shrinkage = Array.from(values("shrinkage")).filter(Number.isFinite);
  const mean = shrinkage.reduce((sum, own) => sum + own, 0) / shrinkage.length;
  const direct = shrinkage.length
    ? [
        note(
          `Up: the model's estimate, the posterior mean. On the broken line both agree; larger dots have more primary data, and are drawn less towards the others. On average ${share(mean)} of the weight is on prior and auxiliary data.`,
        ),
        one.frame,
      ]
    : [note("No unit has primary data.")];
  made.push(one);
  const other = new Scatter(
    values("worth"),
    values("says"),
    {
      logX: true,
      xName: `auxiliary data are worth so many ${DATA.words.unit}`,
      title: "What auxiliary data are worth, and what they speak for, of all units",
      group: IS_FAR,
    },
    pick,
  );
  made.push(other);
  const far = IS_FAR.reduce((sum, own) => sum + own, 0);
  const learned = [
    note(
      `Across: how much the auxiliary data of a unit are worth. Up: the ${DATA.words.theta} that they speak for.${far ? " Orange: far from the training data." : ""}`,
    ),
    other.frame,
  ];
  return {
    made,
    sections: [
      section("Direct and model estimates", false, ...direct),
      section("What was learned", false, ...learned),
    ],
  };
}
