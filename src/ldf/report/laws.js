// What is known of θ: a mixture of Betas, Gammas or Gaussians, {kind, first, second, share}. New
// primary data add to each component, and components that expected them gain share: an exact update.

// A density at an end of what is possible.
function limit(own, other) {
  return own < 1 ? Infinity : own === 1 ? other : 0;
}

const KINDS = {
  // Successes and failures.
  beta: {
    start: 0,
    end: 1,
    mean: (a, b) => a / (a + b),
    variance: (a, b) => ((a / (a + b)) * (b / (a + b))) / (a + b + 1),
    logDensity: (x, a, b) => logBetaFront(x, 1 - x, a, b) - Math.log(x) - Math.log1p(-x),
    atEnd: (x, a, b) => (x === 0 ? limit(a, b) : limit(b, a)),
    cdf: betaCdf,
    gain: (a, b, k, m) => logRising(a, k) + logRising(b, m) - logRising(a + b, k + m),
  },
  // A count and its exposure.
  gamma: {
    start: 0,
    end: Infinity,
    mean: (a, b) => a / b,
    variance: (a, b) => a / b / b,
    logDensity: (x, a, b) => logGammaFront(b * x, a) - Math.log(x),
    atEnd: (x, a, b) => limit(a, b),
    cdf: (x, a, b) => gammaCdf(b * x, a),
    gain: (a, b, k, e) => logRising(a, k) - a * Math.log1p(e / b) - k * Math.log(b + e),
  },
  // A potential (precision times mean) and a precision.
  gaussian: {
    start: -Infinity,
    end: Infinity,
    mean: (h, j) => h / j,
    variance: (h, j) => 1 / j,
    logDensity: (x, h, j) => 0.5 * Math.log(j) - HALF_LOG_2PI - 0.5 * j * (x - h / j) ** 2,
    atEnd: () => 0,
    cdf: (x, h, j) => normalCdf((x - h / j) * Math.sqrt(j)),
    gain: (h, j, potential, precision) => {
      if (precision === 0) return 0;
      const variance = 1 / j + 1 / precision;
      return -0.5 * Math.log(variance) - (potential / precision - h / j) ** 2 / (2 * variance);
    },
  },
};

class Law {
  constructor(kind, first, second, share) {
    this.kind = kind;
    this.of = KINDS[kind];
    const kept = [];
    for (let k = 0; k < share.length; k++) if (share[k] > 0) kept.push(k);
    this.first = kept.map((k) => first[k]);
    this.second = kept.map((k) => second[k]);
    const total = kept.reduce((sum, k) => sum + share[k], 0);
    this.share = kept.map((k) => share[k] / total);
  }

  sum(answer) {
    let total = 0;
    for (let k = 0; k < this.share.length; k++) {
      total += this.share[k] * answer(this.first[k], this.second[k]);
    }
    return total;
  }

  mean() {
    return this.sum(this.of.mean);
  }

  sd() {
    const mean = this.mean();
    const { mean: own, variance } = this.of;
    return Math.sqrt(this.sum((a, b) => variance(a, b) + (own(a, b) - mean) ** 2));
  }

  density(x) {
    const { start, end, logDensity } = this.of;
    if (x < start || x > end) return 0;
    if (x === start || x === end) return this.sum((a, b) => this.of.atEnd(x, a, b));
    return this.sum((a, b) => Math.exp(logDensity(x, a, b)));
  }

  cdf(x) {
    if (x <= this.of.start) return 0;
    if (x >= this.of.end) return 1;
    return Math.min(
      1,
      this.sum((a, b) => this.of.cdf(x, a, b)),
    );
  }

  exceeds(x) {
    return 1 - this.cdf(x);
  }

  // After data worth (first, second) more.
  updated(first, second) {
    const gain = this.first.map((a, k) => this.of.gain(a, this.second[k], first, second));
    const most = Math.max(...gain);
    return new Law(
      this.kind,
      this.first.map((a) => a + first),
      this.second.map((b) => b + second),
      this.share.map((own, k) => own * Math.exp(gain[k] - most)),
    );
  }

  // Two places between which all that counts lies.
  bounds() {
    const { start, end, mean, variance } = this.of;
    let low = Infinity;
    let high = -Infinity;
    for (let k = 0; k < this.share.length; k++) {
      const centre = mean(this.first[k], this.second[k]);
      const sd = Math.sqrt(variance(this.first[k], this.second[k]));
      low = Math.min(low, centre - 12 * sd);
      high = Math.max(high, centre + 12 * sd);
    }
    low = Math.max(low, start);
    high = Math.min(high, end);
    for (let i = 0; i < 60 && high < end && this.cdf(high) < 1 - 1e-14; i++) high += high - low;
    return [low, high];
  }

  // Where the distribution function reaches q: Newton's steps, halving where they lead astray.
  quantile(q, within) {
    let [low, high] = within || this.bounds();
    let x = (low + high) / 2;
    for (let i = 0; i < 200; i++) {
      const off = this.cdf(x) - q;
      if (off === 0) return x;
      if (off < 0) low = x;
      else high = x;
      if (high - low <= 4e-16 * Math.max(Math.abs(low), Math.abs(high))) break;
      const next = x - off / this.density(x);
      const step = Math.abs(next - x);
      x = next > low && next < high ? next : (low + high) / 2;
      if (next === x && step <= 2e-16 * Math.abs(x)) break;
    }
    return x;
  }

  // Places to look at first: around each component, and ever closer to an end.
  knots() {
    const { start, end, mean, variance } = this.of;
    const [low, high] = this.bounds();
    const places = [low, high];
    for (let k = 0; k < this.share.length; k++) {
      if (this.share[k] < 1e-6) continue;
      const centre = mean(this.first[k], this.second[k]);
      const sd = Math.sqrt(variance(this.first[k], this.second[k]));
      for (let i = -20; i <= 20; i++) places.push(centre + (sd * i) / 4);
    }
    const middle = this.mean();
    for (let i = 1; i <= 40; i++) {
      if (start === 0) places.push(middle * 2 ** -i);
      if (end === 1) places.push(1 - (1 - middle) * 2 ** -i);
    }
    const inside = places.filter((x) => x >= low && x <= high).sort((x, y) => x - y);
    return inside.filter((x, i) => i === 0 || x > inside[i - 1]);
  }

  // The narrowest interval with this mass: its ends have equal density, or lie at an end of what is
  // possible. All local minima of the width are looked at.
  interval(mass) {
    const x = this.knots();
    const below = x.map((place) => this.cdf(place));
    const width = [];
    let j = 0;
    for (let i = 0; i < x.length && below[i] + mass <= below[x.length - 1]; i++) {
      const level = below[i] + mass;
      while (below[j] < level) j++;
      const part =
        j > 0 && below[j] > below[j - 1] ? (level - below[j - 1]) / (below[j] - below[j - 1]) : 1;
      width.push(x[Math.max(j - 1, 0)] + part * (x[j] - x[Math.max(j - 1, 0)]) - x[i]);
    }
    const narrowest = Math.min(...width);
    const found = [];
    const { start, end } = this.of;
    if (Number.isFinite(start)) found.push([start, this.quantile(mass)]);
    if (Number.isFinite(end)) found.push([this.quantile(1 - mass), end]);
    for (let i = 0; i < width.length; i++) {
      const before = i > 0 ? width[i - 1] : Infinity;
      const after = i + 1 < width.length ? width[i + 1] : Infinity;
      if (width[i] > 1.2 * narrowest || width[i] > before || width[i] > after) continue;
      found.push(this.level(x, i, mass));
    }
    const best = found
      .filter((ends) => ends)
      .sort((one, other) => one[1] - one[0] - other[1] + other[0]);
    return best[0];
  }

  // Both ends of the interval of this mass that begins near the i-th of these places and has equal
  // density at its ends; nothing if there is none.
  level(x, i, mass) {
    const top = x[x.length - 1];
    const end = (low, within) => this.quantile(Math.min(this.cdf(low) + mass, 1), within);
    // Where it begins too early, its first end is less likely than its last.
    const early = (low, high) => this.density(low) < this.density(high);
    const last = this.quantile(1 - mass, [x[0], top]);
    let left = Math.max(i - 1, 0);
    while (left > 0 && !early(x[left], end(x[left], [x[left], top]))) left--;
    let right = Math.max(i + 1, left + 1);
    while (right < x.length && x[right] < last && early(x[right], end(x[right], [x[right], top]))) {
      right++;
    }
    let low = x[left];
    let high = right < x.length ? Math.min(x[right], last) : last;
    let within = [end(low, [low, top]), top];
    let found = null;
    while (high - low > 1e-14 * Math.max(Math.abs(low), Math.abs(high), 1e-300)) {
      const middle = (low + high) / 2;
      if (middle === low || middle === high) break;
      const other = end(middle, within);
      found = [middle, other];
      if (early(middle, other)) {
        low = middle;
        within = [other, within[1]];
      } else {
        high = middle;
        within = [within[0], other];
      }
    }
    return found;
  }
}

// --- New primary data, before they are there -----------------------------------------------------

// The log probability of k among n trials, or in an exposure of n; of a mean y with this precision.
const PREDICTED = {
  beta: (a, b, k, n) =>
    logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1) + KINDS.beta.gain(a, b, k, n - k),
  gamma: (a, b, k, n) =>
    KINDS.gamma.gain(a, b, k, n) + (k > 0 ? k * Math.log(n) : 0) - logGamma(k + 1),
  gaussian: (h, j, y, precision) =>
    KINDS.gaussian.gain(h, j, y * precision, precision) - HALF_LOG_2PI,
};

function predicted(law, y, design) {
  return law.sum((a, b) => Math.exp(PREDICTED[law.kind](a, b, y, design)));
}

// Its mean and standard deviation.
function predictedMoments(law, design) {
  const mean = law.mean();
  const variance = law.sd() ** 2;
  if (law.kind === "beta") {
    const within = mean * (1 - mean) - variance;
    return [design * mean, Math.sqrt(design * within + design * design * variance)];
  }
  if (law.kind === "gamma")
    return [design * mean, Math.sqrt(design * mean + design * design * variance)];
  return [mean, Math.sqrt(variance + 1 / design)];
}
