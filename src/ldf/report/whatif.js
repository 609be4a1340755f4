// What if there were further primary data: conjugacy makes the answer exact and immediate.

// What the two numbers add to a statistic.
function added(design, outcome) {
  const { kind } = LAWS;
  if (kind === "beta") return [outcome, design - outcome];
  if (kind === "gamma") return [outcome, design];
  const precision =
    DATA.family === "Gaussian" && DATA.words.unit !== "values"
      ? 1 / design
      : design * DATA.words.scale;
  return [outcome * precision, precision];
}

// Mean, interval and exceedance once they are added.
function after(unit, design, outcome) {
  const law = lawsOf(unit).both.updated(...added(design, outcome));
  const [lower, upper] = law.interval(DATA.mass);
  return {
    law,
    mean: law.mean(),
    lower,
    upper,
    sd: law.sd(),
    exceeds: law.exceeds(DATA.threshold),
  };
}

// Two sliders, each with a field for any number.
function asking(label, id, value, low, high, step, changed) {
  const field = element("input", {
    type: "number",
    id: `${id}-number`,
    value,
    min: low,
    step: "any",
  });
  const slide = element("input", {
    type: "range",
    id,
    min: low,
    max: high,
    step,
    value,
    "aria-label": label,
  });
  const set = (text) => {
    const given = Number(text);
    if (text === "" || !Number.isFinite(given)) return;
    changed(given);
  };
  field.addEventListener("input", () => set(field.value));
  slide.addEventListener("input", () => set(slide.value));
  return { field, slide, label: element("label", { for: field.id }, label) };
}

function round(x, digits) {
  return Number(x.toPrecision(digits));
}

function whatIf(unit, laws) {
  const title = element("h3", {}, "What if we asked more?");
  if (!laws || !DATA.words.asked)
    return [title, element("p", { class: "note" }, DATA.words.why_not)];
  const { whole, scale } = DATA.words;
  const { kind } = LAWS;
  const usual = Array.from(LAWS.design()).sort((a, b) => a - b)[Math.floor(UNITS / 2)];
  const estimate = kind === "gaussian" && DATA.words.unit !== "values";
  const mean = laws.both.mean();
  const spread = laws.both.sd();
  // Successes and counts: so many more, and what they bring. Means: how many values, and their mean.
  let design = whole
    ? Math.max(10, Math.round(usual))
    : kind === "gamma"
      ? usual
      : estimate
        ? 1 / usual
        : Math.max(1, usual / scale);
  design = whole ? design : round(design, 3);
  let outcome = kind === "gaussian" ? round(mean, 4) : Math.round(design * mean);
  const most = whole ? Math.max(50, 4 * design) : 4 * design;
  const least = estimate ? design / 20 : 0;
  const result = element("div", {
    class: "result",
    role: "status",
    "aria-live": "polite",
    id: "whatif-result",
  });
  const picture = element("div");
  const tall = Math.max(8, Math.ceil(most * (mean + 3 * spread)));
  const changed = (own) => (value) => {
    if (own === "design") {
      const share = design > 0 ? outcome / design : mean;
      design = Math.max(least, whole ? Math.round(value) : value);
      if (kind !== "gaussian") outcome = Math.round(design * share);
    } else {
      outcome = kind === "gaussian" ? value : Math.max(0, Math.round(value));
    }
    if (whole) outcome = Math.min(outcome, design);
    show(own);
  };
  const one = asking(
    DATA.words.asked[0],
    "whatif-design",
    design,
    least,
    most,
    whole ? 1 : most / 200,
    changed("design"),
  );
  const ends =
    kind === "gaussian" ? [mean - 5 * spread, mean + 5 * spread] : [0, whole ? most : tall];
  const other = asking(
    DATA.words.asked[1],
    "whatif-outcome",
    outcome,
    kind === "gaussian" ? "any" : 0,
    ends[1],
    1,
    changed("outcome"),
  );
  if (kind === "gaussian") {
    other.field.removeAttribute("min");
    other.slide.min = ends[0];
    other.slide.step = "any";
  }
  function show(own) {
    one.slide.value = design;
    other.slide.value = outcome;
    if (own !== "design") one.field.value = design;
    if (own !== "outcome") other.field.value = outcome;
    if (own === "outcome" && Number(other.field.value) !== outcome) other.field.value = outcome;
    if (whole) other.slide.max = Math.max(design, 1);
    const then = after(unit, design, outcome);
    const narrower =
      1 - (then.upper - then.lower) / (valueOf("upper", unit) - valueOf("lower", unit));
    const change = narrower >= 0 ? `${share(narrower)} narrower` : `${share(-narrower)} wider`;
    result.replaceChildren(
      element("strong", {}, theta(then.mean)),
      ` on average, between ${theta(then.lower)} and ${theta(then.upper)} (${change} than now); ` +
        `P(more than ${theta(DATA.threshold)}) is ${share(then.exceeds)}.`,
    );
    const told = `Density now, and after what you add: mean ${theta(then.mean)}.`;
    picture.replaceChildren(
      curves(
        [
          ["both", laws.both],
          ["more", then.law],
        ],
        told,
        null,
        NaN,
        130,
      ),
    );
  }
  show();
  const grid = element(
    "div",
    { class: "asked" },
    one.label,
    one.slide,
    one.field,
    other.label,
    other.slide,
    other.field,
  );
  return [title, grid, result, keys(["both", "more"]), picture];
}
