// The card of one unit: what is known of it, from which source, and what was seen of it.

function drawCard(unit) {
  byId("card-title").textContent = DATA.labels[unit];
  const laws = LAWS && lawsOf(unit);
  put(
    "card-body",
    chips(unit),
    ...lead(unit),
    ...(laws ? densities(unit, laws) : intervals(unit)),
    ...sources(unit),
    ...whatIf(unit, laws),
    ...(laws ? prediction(unit, laws) : []),
    ...besides(unit),
    ...featureRows(unit),
  );
}

function chips(unit) {
  const list = element("ul", { class: "chips" });
  const asked = valueOf("asked", unit);
  if (!SEEN[unit]) list.append(element("li", {}, "no primary data"));
  else list.append(element("li", {}, `primary data: ${number(asked)} ${DATA.words.unit}`));
  if (TRAINING[unit]) list.append(element("li", {}, "learned from, answered for out of fold"));
  if (IS_FAR[unit]) list.append(element("li", { class: "warn" }, "⚑ far from the training data"));
  return list;
}

function lead(unit) {
  const { theta: what } = DATA.words;
  return [
    element(
      "p",
      { class: "lead" },
      element("strong", {}, shown("mean", unit)),
      ` is the mean of the ${what}; with probability ${number(100 * DATA.mass)} % it is between ` +
        `${shown("lower", unit)} and ${shown("upper", unit)}.`,
    ),
    element(
      "p",
      {},
      `P(more than ${theta(DATA.threshold)}) is ${shown("exceeds", unit)}. ` +
        `The entropy is ${shown("entropy", unit)} nats.`,
    ),
  ];
}

function densities(unit, laws) {
  const direct = valueOf("direct", unit);
  const order = ["prior", "both", "auxiliary", "primary"];
  const named = order.filter((name) => laws[name]).map((name) => [name, laws[name]]);
  const title =
    `Densities of the ${DATA.words.theta}: given auxiliary data the mean is ` +
    `${shown("auxiliary_mean", unit)}, given both ${shown("mean", unit)}.`;
  const listed = ["prior", "auxiliary", "primary", "both"].filter((name) => laws[name]);
  return [
    element("h3", {}, "Before and after each source"),
    keys(listed, Number.isFinite(direct)),
    curves(named, title, DATA.words.theta, direct),
  ];
}

// Where the page does not know the family's distribution: intervals only.
function intervals(unit) {
  const rows = ["auxiliary_", ""].map((prefix) => [
    prefix ? "auxiliary data" : "both",
    shown(`${prefix}mean`, unit),
    shown(`${prefix}lower`, unit),
    shown(`${prefix}upper`, unit),
  ]);
  return [
    element("h3", {}, "Before and after primary data"),
    wide(plainTable(["given", "mean", "lower", "upper"], rows, "Intervals by what is given")),
  ];
}

// --- What each source is worth -------------------------------------------------------------------

function sources(unit) {
  const [priorT, priorN] = DATA.prior;
  const asked = valueOf("asked", unit);
  const parts = [
    ["prior", priorN, priorT / priorN, "prior"],
    ["auxiliary data", valueOf("worth", unit), valueOf("says", unit), "auxiliary"],
    ["primary data", Number.isFinite(asked) ? asked : 0, valueOf("direct", unit), "primary"],
  ];
  const most = Math.max(...parts.map(([, n]) => n)) || 1;
  const rows = parts.map(([name, n, rate, style]) => {
    const bar = element("span", { class: `bars ${style}` });
    bar.style.width = `${(100 * n) / most}%`;
    return [name, number(n), theta(rate), bar];
  });
  const table = plainTable(
    ["source", DATA.words.unit, "speaks for", "in comparison"],
    rows,
    "What each source is worth",
  );
  table.className = "worth";
  const shrinkage = valueOf("shrinkage", unit);
  const told = Number.isFinite(shrinkage)
    ? `They add. Prior and auxiliary data have ${share(shrinkage)} of the weight: the direct estimate ` +
      `${shown("direct", unit)} is drawn to ${shown("mean", unit)}.`
    : "They add.";
  return [
    element("h3", {}, "What each source is worth"),
    wide(table),
    element("p", { class: "note" }, told),
  ];
}

// --- What was predicted, and what came -----------------------------------------------------------

function prediction(unit, laws) {
  if (!DATA.words.asked) return [];
  const design = LAWS.design()[unit];
  const seen = SEEN[unit] && valueOf("asked", unit) > 0;
  const y = seen ? outcomeOf(unit) : NaN;
  const [mean, sd] = predictedMoments(laws.auxiliary, design);
  const whole = laws.auxiliary.kind !== "gaussian";
  let low = mean - 4 * sd;
  let high = mean + 4 * sd;
  if (Number.isFinite(y)) [low, high] = [Math.min(low, y - 0.5 * sd), Math.max(high, y + 0.5 * sd)];
  if (whole) low = Math.max(0, Math.floor(low));
  if (whole) high = Math.max(low + 1, Math.ceil(high));
  if (laws.auxiliary.kind === "beta") high = Math.min(high, Math.ceil(design));
  const step = whole ? Math.max(1, Math.ceil((high - low) / 120)) : (high - low) / 120;
  const places = [];
  for (let at = low; at <= high; at += step) places.push(at);
  const heights = places.map((at) => predicted(laws.auxiliary, at, design));
  const top = Math.max(...heights);
  const unitWord = DATA.words.unit;
  const asked = whole ? ` of ${number(design)} ${unitWord}` : "";
  const told = seen
    ? `Before primary data came, auxiliary data had predicted ${number(mean)} ± ${number(sd)}${asked}; ${number(y)} came.`
    : `Nothing was observed here. Auxiliary data predict ${number(mean)} ± ${number(sd)}${asked}, as in the median unit.`;
  const margin = whole ? 0.5 * step : 0;
  const { picture, x, bottom } = plot(
    room(),
    150,
    low - margin,
    high + margin,
    number,
    told,
    DATA.words.outcome,
    whole,
  );
  const width = Math.max(1, (x(low + step) - x(low)) * (whole ? 0.86 : 1.02));
  places.forEach((at, i) => {
    const height = ((bottom - 10) * heights[i]) / (top || 1);
    picture.append(
      svg("rect", {
        class: "bar auxiliary",
        opacity: 0.7,
        x: x(at) - width / 2,
        y: bottom - height,
        width,
        height,
      }),
    );
  });
  if (Number.isFinite(y)) {
    picture.append(
      svg("line", {
        x1: x(y),
        x2: x(y),
        y1: 4,
        y2: bottom,
        stroke: "var(--ink)",
        "stroke-width": 2.5,
      }),
      svg(
        "text",
        {
          class: "text-mark",
          x: x(y) + (x(y) > 0.75 * room() ? -6 : 6),
          y: 14,
          "text-anchor": x(y) > 0.75 * room() ? "end" : "start",
        },
        `observed ${number(y)}`,
      ),
    );
  }
  const score = valueOf("score", unit);
  const more = Number.isFinite(score) ? ` Its log score is ${number(score)}.` : "";
  return [
    element("h3", {}, "Predicted and observed"),
    picture,
    element("p", { class: "note" }, told + more),
  ];
}

// What was observed: successes, a count, or a mean.
function outcomeOf(unit) {
  const [first, second] = LAWS.primary.map((part) => part()[unit]);
  return LAWS.kind === "gaussian" ? first / second : first;
}

// --- Beside the baselines ------------------------------------------------------------------------

const BY_UNIT = (DATA.checks.by_unit || []).map((own) => ({
  name: own.name,
  score: later(own.score),
  mean: later(own.mean),
}));

function besides(unit) {
  const title = element("h3", {}, "Beside the baselines");
  if (!BY_UNIT.length) {
    const told =
      "Write the report with validation=ldf.cross_validate(model, frame) to see what each baseline says of this unit.";
    return [title, element("p", { class: "note" }, told)];
  }
  const rows = BY_UNIT.filter((own) => Number.isFinite(own.score()[unit])).map((own) => [
    own.name,
    number(own.mean()[unit]),
    number(own.score()[unit]),
  ]);
  if (!rows.length)
    return [
      title,
      element(
        "p",
        { class: "note" },
        "This unit was not held out: it has no primary data to compare with.",
      ),
    ];
  const y = LAWS ? ` Observed: ${number(outcomeOf(unit))}.` : "";
  return [
    title,
    wide(
      plainTable(
        ["model, without this unit", "predicts", "log score"],
        rows,
        "Baselines of this unit",
      ),
    ),
    element("p", { class: "note" }, `More is better.${y}`),
  ];
}

// --- Features ------------------------------------------------------------------------------------

const FEATURES = {
  ...DATA.features,
  values: later(DATA.features.values),
  spread: later(DATA.features.spread),
};
const LEVELS = 101;
const FIRST = 12; // features shown before one asks for more
let allFeatures = false;

function featureRows(unit) {
  const { names, hidden } = FEATURES;
  if (!names.length) return [];
  const each = names.map((name, j) => {
    const value = FEATURES.values()[j * UNITS + unit];
    return {
      name,
      value,
      hidden: hidden[j],
      spread: FEATURES.spread().subarray(j * LEVELS, (j + 1) * LEVELS),
    };
  });
  for (const one of each) one.rank = one.hidden ? one.value : rankIn(one.spread, one.value);
  const far = (one) => (Number.isFinite(one.rank) ? -Math.abs(one.rank - 0.5) : 1);
  if (each.length > FIRST) each.sort((a, b) => far(a) - far(b));
  const kept = allFeatures ? each : each.slice(0, FIRST);
  const rows = kept.map((one) => [
    one.name,
    Number.isFinite(one.value) ? (one.hidden ? "" : number(one.value)) : "missing",
    Number.isFinite(one.rank) ? share(one.rank) : "–",
    strip(one),
  ]);
  const table = plainTable(
    ["feature", "here", "of units are below", "all units"],
    rows,
    "Features of this unit against all units",
  );
  const more = [];
  if (each.length > kept.length) {
    const button = element("button", { type: "button" }, `Show all ${each.length} features`);
    button.addEventListener("click", () => {
      allFeatures = true;
      drawCard(unit);
    });
    more.push(
      element("p", { class: "note" }, `The ${kept.length} in which it is most unusual. `, button),
    );
  }
  if (FEATURES.left_out)
    more.push(
      element("p", { class: "note" }, `${FEATURES.left_out} further columns are not on this page.`),
    );
  const told = "Bands hold the middle half and nine tenths of all units; the line is this unit.";
  return [
    element("h3", {}, "Features against all units"),
    wide(table),
    element("p", { class: "note" }, told),
    ...more,
  ];
}

// The share of units below, by quantiles; of ties, the middle.
function rankIn(spread, value) {
  if (!Number.isFinite(value)) return NaN;
  const last = LEVELS - 1;
  const at = (beyond) => {
    let i = 0;
    while (i < LEVELS && (beyond ? spread[i] <= value : spread[i] < value)) i++;
    if (i === 0) return 0;
    if (i === LEVELS) return 1;
    const gap = spread[i] - spread[i - 1];
    return (i - 1 + (gap > 0 ? (value - spread[i - 1]) / gap : 0)) / last;
  };
  return (at(false) + at(true)) / 2;
}

function strip(one) {
  const { spread } = one;
  const [low, high] = [spread[2], spread[98]];
  const span = high - low || 1;
  const x = (value) => 4 + 152 * Math.max(0, Math.min(1, (value - low) / span));
  const picture = svg("svg", { class: "strip", viewBox: "0 0 160 16", "aria-hidden": "true" });
  const band = (from, to, y, height, opacity) => {
    const width = Math.max(1, x(spread[to]) - x(spread[from]));
    picture.append(
      svg("rect", { x: x(spread[from]), y, width, height, fill: "var(--soft)", opacity }),
    );
  };
  band(5, 95, 6, 4, 0.35);
  band(25, 75, 4, 8, 0.55);
  if (Number.isFinite(one.value)) {
    picture.append(
      svg("line", {
        x1: x(one.value),
        x2: x(one.value),
        y1: 0,
        y2: 16,
        stroke: "var(--pick)",
        "stroke-width": 3,
      }),
    );
  }
  return picture;
}
