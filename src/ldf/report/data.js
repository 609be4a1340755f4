// The data of the page, and numbers in words.

const DATA = JSON.parse(document.getElementById("data").textContent);
const UNITS = DATA.labels.length;
const ARRAYS = {
  Float32: Float32Array,
  Float64: Float64Array,
  Int32: Int32Array,
  Uint16: Uint16Array,
  Uint8: Uint8Array,
};

function unpack(packed) {
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(packed.bytes);
  } else {
    const text = atob(packed.bytes);
    bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  }
  return new ARRAYS[packed.type](bytes.buffer);
}

// An array that is decoded when it is first asked for.
function later(packed) {
  let found = null;
  return () => (found = found || unpack(packed));
}

const COLUMNS = new Map(
  DATA.columns.map((column) => [column.key, { ...column, values: later(column.data) }]),
);
const SEEN = unpack(DATA.seen);
const TRAINING = unpack(DATA.training);
const IS_FAR = unpack(DATA.far);

function valueOf(key, unit) {
  return COLUMNS.get(key).values()[unit];
}

// --- Numbers in words ----------------------------------------------------------------------------

function digits(x, n) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e10 || size < 1e-4)
    return x
      .toExponential(n - 1)
      .replace("e", "·10^")
      .replace("+", "");
  if (size >= 1000) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(n)));
}

function number(x) {
  return Number.isFinite(x) ? digits(x, 3) : "–";
}

function share(x) {
  if (!Number.isFinite(x)) return "–";
  const percent = 100 * x;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < 100 && percent > 99.9) return "> 99.9 %";
  return `${percent.toFixed(1)} %`;
}

// A value of θ, or of what is measured as θ is.
function theta(x) {
  if (!Number.isFinite(x)) return "–";
  return digits(DATA.words.times * x, 3) + DATA.words.suffix;
}

const FORMATS = { value: theta, share, number };

function shown(key, unit) {
  const column = COLUMNS.get(key);
  return FORMATS[column.format](column.values()[unit]);
}

// --- What is known of a unit ---------------------------------------------------------------------

const LAWS = DATA.laws && {
  ...DATA.laws,
  first: later(DATA.laws.first),
  second: later(DATA.laws.second),
  before: later(DATA.laws.before),
  after: later(DATA.laws.after),
  primary: DATA.laws.primary.map(later),
  alone: later(DATA.laws.alone),
  design: later(DATA.laws.design),
};

// The laws of one unit's θ by what is given: nothing, auxiliary data, primary data, both.
function lawsOf(unit) {
  const many = LAWS.components;
  const cut = (array, n) => Array.from(array().subarray(unit * n, (unit + 1) * n));
  const [y1, y2] = LAWS.primary.map((part) => part()[unit]);
  const first = cut(LAWS.first, many);
  const second = cut(LAWS.second, many);
  const { prior } = LAWS;
  const found = {
    prior: new Law(LAWS.kind, prior.first, prior.second, prior.share),
    auxiliary: new Law(LAWS.kind, first, second, cut(LAWS.before, many)),
  };
  const plus = (values, more) => values.map((value) => value + more);
  found.both = new Law(LAWS.kind, plus(first, y1), plus(second, y2), cut(LAWS.after, many));
  if (SEEN[unit] && (y1 !== 0 || y2 !== 0)) {
    const alone = cut(LAWS.alone, prior.share.length);
    found.primary = new Law(LAWS.kind, plus(prior.first, y1), plus(prior.second, y2), alone);
  }
  return found;
}
