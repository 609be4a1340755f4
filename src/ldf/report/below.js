// Below the map: whether to believe it, how far direct estimates are drawn, what was learned, and
// what the model is.

function section(title, full, ...children) {
  const id = `section-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return element(
    "section",
    { class: full ? "panel full" : "panel", "aria-labelledby": id },
    element("h2", { id }, title),
    ...children,
  );
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
        own.name === first.name || own.behind === null
          ? ""
          : `${own.behind.toFixed(3)} ± ${number(own.error)}`,
        own.held === null ? "–" : `${share(own.held)} of ${share(own.expected)}`,
      ]);
    parts.push(
      wide(
        plainTable(
          ["model", "log score", `minus ${first.name}`, "90 % sets hold"],
          rows,
          "Held-out scores by model",
        ),
      ),
      note(
        `${checks.units.toLocaleString("en")} units, each held out once in ${checks.folds} folds; mean log score a unit, ` +
          "more is better. The last column is how many held-out units are in their 90 % sets, beside what these sets, " +
          "being of whole numbers where data are, really hold.",
      ),
    );
  } else if (checks.score === null) {
    parts.push(note("There are no primary data in this report to compare with."));
  } else {
    parts.push(
      element(
        "p",
        {},
        `Mean held-out log score: ${checks.score.toFixed(3)} a unit, of ${checks.units.toLocaleString("en")} units.`,
      ),
    );
  }
  if (checks.advice) parts.push(note(checks.advice));
  return section("Held-out scores", false, ...parts);
}

function calibrationSection() {
  const { checks } = DATA;
  if (!checks.pit)
    return section(
      "Calibration",
      false,
      note("Nothing was predicted here that could be compared with whole data."),
    );
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
  const { picture, x, bottom, left, right } = plot(
    room(),
    150,
    0,
    1,
    (v) => String(round(v, 2)),
    told,
    "where the observed value lies in its prediction (PIT)",
  );
  const y = (n) => bottom - ((bottom - 6) * n) / top;
  const bin = 1 / checks.pit.length;
  checks.pit.forEach((n, i) => {
    picture.append(
      svg("rect", {
        class: "bar",
        x: x(i * bin) + 1,
        y: y(n),
        width: x(bin) - x(0) - 2,
        height: bottom - y(n),
        opacity: 0.8,
      }),
    );
  });
  const off = 2 * Math.sqrt(even * (1 - bin));
  picture.append(
    svg("rect", {
      x: left,
      width: right - left,
      y: y(even + off),
      height: y(Math.max(0, even - off)) - y(even + off),
      fill: "var(--pick)",
      opacity: 0.2,
    }),
    svg("line", {
      x1: left,
      x2: right,
      y1: y(even),
      y2: y(even),
      stroke: "var(--pick)",
      "stroke-width": 2,
    }),
  );
  return section(
    "Calibration",
    false,
    picture,
    note(
      `The line is where calibrated bars stand, the band two standard errors. ${checks.uniform.test} test: p = ${number(checks.uniform.p)}.`,
    ),
    wide(
      plainTable(
        ["sets of", "hold by the model", "held", "standard error"],
        rows,
        "Coverage of held-out units",
      ),
    ),
  );
}

// --- What is missing, and what is far -------------------------------------------------------------

function gapsSection() {
  const seen = SEEN.reduce((sum, own) => sum + own, 0);
  const far = IS_FAR.reduce((sum, own) => sum + own, 0);
  let none = 0;
  COLUMNS.get("asked")
    .values()
    .forEach((n) => (none += n === 0));
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
    element(
      "p",
      {},
      `${missing.toLocaleString("en")} of ${UNITS.toLocaleString("en")} units have no primary data${none ? `, and ${none.toLocaleString("en")} more asked nobody` : ""}. `,
      missing ? button("List them", "unseen") : null,
    ),
    element(
      "p",
      {},
      `${far.toLocaleString("en")} units are far from the training data. `,
      far ? button("List these", "far") : null,
    ),
    note(DATA.card.far),
    note("On the map, colour by primary data to see where there are none, or by distance."),
  );
}

// --- The model card --------------------------------------------------------------------------------

function cardSection() {
  const parts = DATA.card.sections.map((own) =>
    element(
      "div",
      {},
      element("h3", {}, own.title),
      element("ul", {}, ...own.lines.map((line) => element("li", {}, line))),
    ),
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
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ...["item", "asks for", "in this report"].map((name, i) =>
          element("th", { scope: "col", class: i ? "wrap" : "" }, name),
        ),
      ),
    ),
    element("tbody", {}, ...rows),
  );
  return section(
    "Model card",
    true,
    element("div", { class: "columns" }, ...parts),
    element(
      "details",
      {},
      element("summary", {}, "GATHER: what reports of estimates should tell"),
      wide(table),
    ),
  );
}
