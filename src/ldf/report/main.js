// What is picked in one place is shown in all.

function announce(text) {
  byId("live").textContent = text;
}

function start() {
  byId("title").textContent = DATA.title;
  const seen = SEEN.reduce((sum, own) => sum + own, 0);
  byId("summary").textContent =
    `${UNITS.toLocaleString("en")} units, ${seen.toLocaleString("en")} with primary data. What is estimated: ` +
    `${DATA.words.theta} (${DATA.family}). Pick a unit on the map or in the table to see what is known of it, and from where.`;

  const views = [];
  const pick = (unit, byTable) => {
    for (const view of views) view.select(unit);
    drawCard(unit);
    announce(
      `${DATA.labels[unit]}: mean ${shown("mean", unit)}, between ${shown("lower", unit)} and ${shown("upper", unit)}` +
        `${IS_FAR[unit] ? ", far from the training data" : ""}`,
    );
    // On a narrow screen the card is above the table, out of sight.
    if (byTable && window.innerWidth <= 900) byId("card").scrollIntoView();
  };

  const quantity = byId("quantity");
  for (const key of COLOURED) {
    const column = COLUMNS.get(key);
    if (column.values().some(Number.isFinite))
      quantity.append(element("option", { value: key }, column.name));
  }
  for (const [value, name] of Object.entries(WHICH))
    byId("which").append(element("option", { value }, name));

  const map = new UnitMap(byId("map"), pick);
  const table = new UnitTable(pick);
  views.push(map, table);
  quantity.addEventListener("change", () => map.colourBy(quantity.value));
  map.colourBy("mean");
  const kinds = {
    areas: "Click an area; the table below is the way by keyboard.",
    points: "Click a place; the table below is the way by keyboard.",
    ranked: "Units from the lowest mean to the highest, with their intervals. No places are known.",
  };
  if (map.kind === "ranked") byId("map-title").textContent = "Units by rank";
  byId("map-help").textContent = [kinds[map.kind], DATA.map.note].filter(Boolean).join(" ");

  const { made, sections } = scatters(pick);
  views.push(...made);
  put("below", scoresSection(), calibrationSection(), ...sections, gapsSection(), cardSection());
  pick(table.units[0]);
  announce("");

  const redraw = () => [map, ...made].forEach((view) => view.draw());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

// For the console: the same functions that the page uses.
window.ldf = { logGamma, logRising, betaCdf, gammaCdf, normalCdf, Law, lawsOf, after };
start();
