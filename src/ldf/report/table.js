// The table: all units, of which only those in sight are in the document. It is one stop of the Tab
// key; arrows move within it, Enter picks.

const LISTED = ["mean", "lower", "upper", "exceeds", "worth", "asked", "direct"];
const EXTRA = new Set(["worth", "direct", "exceeds"]); // not on a phone
const ROW = 32; // pixels
const AROUND = 8; // rows drawn beyond those in sight
const PRINTED = 100; // rows on paper
const PAPER = window.matchMedia("print");
const WHICH = {
  all: "all units",
  seen: "with primary data",
  unseen: "without primary data",
  far: "far from the training data",
};

class UnitTable {
  constructor(pick) {
    this.pick = pick;
    this.grid = byId("table");
    this.scroll = byId("scroll");
    this.body = byId("table-body");
    this.words = DATA.labels.map((label) => label.toLowerCase());
    this.by = { key: "mean", down: true };
    this.active = 0;
    this.head();
    this.filter();
    this.listen();
  }

  head() {
    const row = element("tr", { "aria-rowindex": 1 });
    for (const key of ["label", ...LISTED]) {
      const column = COLUMNS.get(key);
      const name = key === "label" ? "unit" : column.short;
      const button = element("button", { type: "button", tabindex: -1 }, name);
      if (column) button.title = column.name;
      button.addEventListener("click", () => this.sortBy(key));
      const cell = element("th", { scope: "col", "data-key": key }, button);
      if (EXTRA.has(key)) cell.className = "extra";
      row.append(cell);
    }
    put("table-head", row);
  }

  sortBy(key) {
    const down = this.by.key === key ? !this.by.down : key !== "label";
    this.by = { key, down };
    this.filter();
    announce(
      `Sorted by ${key === "label" ? "unit" : COLUMNS.get(key).name}, ${down ? "highest" : "lowest"} first`,
    );
  }

  filter() {
    const wanted = byId("search").value.trim().toLowerCase();
    const which = byId("which").value || "all";
    const units = [];
    for (let unit = 0; unit < UNITS; unit++) {
      if (which === "seen" && !SEEN[unit]) continue;
      if (which === "unseen" && SEEN[unit]) continue;
      if (which === "far" && !IS_FAR[unit]) continue;
      if (wanted && !this.words[unit].includes(wanted)) continue;
      units.push(unit);
    }
    const { key, down } = this.by;
    const sign = down ? -1 : 1;
    if (key === "label") {
      units.sort((a, b) => sign * WORDS.compare(DATA.labels[a], DATA.labels[b]));
    } else {
      const values = COLUMNS.get(key).values();
      const last = (v) => (Number.isFinite(v) ? sign * v : Infinity); // what is missing comes last
      units.sort((a, b) => {
        const [x, y] = [last(values[a]), last(values[b])];
        return x === y ? a - b : x - y;
      });
    }
    this.units = units;
    this.active = Math.max(0, units.indexOf(this.picked));
    for (const cell of byId("table-head").querySelectorAll("th")) {
      const own = cell.dataset.key === key;
      cell.setAttribute("aria-sort", own ? (down ? "descending" : "ascending") : "none");
      const button = cell.firstElementChild;
      button.textContent =
        button.textContent.replace(/ [▲▼]$/, "") + (own ? (down ? " ▼" : " ▲") : "");
    }
    this.grid.setAttribute("aria-rowcount", units.length + 1);
    this.scroll.scrollTop = 0;
    this.reveal();
    this.draw();
  }

  help() {
    const [some, all] = [this.units.length, UNITS].map((n) => n.toLocaleString("en"));
    const { key, down } = this.by;
    const order = `${key === "label" ? "unit" : COLUMNS.get(key).name}, ${down ? "highest" : "lowest"} first`;
    if (!PAPER.matches) return `${some} of ${all} units. Arrow keys move, Enter picks, the heads of columns sort.`;
    const first = this.units.length > PRINTED ? `The first ${PRINTED} of ` : "";
    return `${first}${some} of ${all} units, by ${order}.`;
  }

  draw() {
    byId("table-help").textContent = this.help();
    if (PAPER.matches) {
      const rows = this.units.slice(0, PRINTED).map((_, at) => this.row(at));
      this.body.replaceChildren(...rows);
      return;
    }
    const from = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - AROUND);
    const fits = Math.ceil((this.scroll.clientHeight || 480) / ROW) + 2 * AROUND;
    const to = Math.min(this.units.length, from + fits);
    const rows = [this.space(from)];
    for (let at = from; at < to; at++) rows.push(this.row(at));
    rows.push(this.space(this.units.length - to));
    this.body.replaceChildren(...rows.filter((row) => row));
    if (this.units.length)
      this.grid.setAttribute("aria-activedescendant", `row-${this.units[this.active]}`);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  space(rows) {
    if (!rows) return null;
    const cell = element("td", { colspan: LISTED.length + 1 });
    cell.style.height = `${rows * ROW}px`;
    return element("tr", { class: "space", "aria-hidden": "true" }, cell);
  }

  row(at) {
    const unit = this.units[at];
    const row = element("tr", { id: `row-${unit}`, "aria-rowindex": at + 2 });
    const flag = IS_FAR[unit] ? " ⚑" : "";
    row.append(element("th", { scope: "row", title: DATA.labels[unit] }, DATA.labels[unit] + flag));
    for (const key of LISTED) {
      const cell = element("td", {}, shown(key, unit));
      if (EXTRA.has(key)) cell.className = "extra";
      row.append(cell);
    }
    row.setAttribute("aria-selected", unit === this.picked);
    if (unit === this.picked) row.classList.add("picked");
    if (at === this.active) row.classList.add("active");
    return row;
  }

  // The active row, into sight.
  reveal() {
    const top = this.active * ROW;
    const seen = (this.scroll.clientHeight || 480) - 2 * ROW;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top > this.scroll.scrollTop + seen) this.scroll.scrollTop = top - seen;
  }

  select(unit) {
    this.picked = unit;
    const at = this.units.indexOf(unit);
    if (at >= 0) {
      this.active = at;
      this.reveal();
    }
    this.draw();
  }

  listen() {
    let waiting = false;
    this.scroll.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.draw();
      });
    });
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr[id]");
      if (row) this.pick(Number(row.id.slice(4)), true);
    });
    PAPER.addEventListener("change", () => this.draw());
    this.grid.addEventListener("keydown", (event) => this.press(event));
    byId("search").addEventListener("input", () => this.filter());
    byId("which").addEventListener("change", () => this.filter());
    byId("save").addEventListener("click", () => saveCsv(this.units));
  }

  press(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 2);
    const last = this.units.length - 1;
    const to = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: last,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.active = Math.max(0, Math.min(last, to));
      this.reveal();
      this.draw();
    } else if (
      (event.key === "Enter" || event.key === " ") &&
      event.target === this.grid &&
      last >= 0
    ) {
      event.preventDefault();
      this.pick(this.units[this.active]);
    }
  }
}

const WORDS = new Intl.Collator("en", { numeric: true });

// --- The table as a file -------------------------------------------------------------------------

function saveCsv(units) {
  // A label that begins like a formula would be run by a spreadsheet.
  const quote = (text) =>
    `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  const columns = DATA.columns.filter((column) => column.short);
  const lines = [["unit", ...columns.map((column) => column.key), "far"].join(",")];
  for (const unit of units) {
    const cells = columns.map((column) => {
      const value = valueOf(column.key, unit);
      return Number.isFinite(value) ? String(value) : "";
    });
    lines.push([quote(DATA.labels[unit]), ...cells, IS_FAR[unit]].join(","));
  }
  const file = new Blob([`${lines.join("\n")}\n`], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(file), download: "estimates.csv" });
  link.click();
  URL.revokeObjectURL(link.href);
}
