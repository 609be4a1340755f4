// Special functions in double precision. Logarithms of gamma functions are never subtracted where
// both are large: differences and prefactors go by Stirling's formula and what it leaves out.

const HALF_LOG_2PI = 0.9189385332046727;

// log Γ(x) − [(x − 1/2) log x − x + log(2π)/2], x > 0.
function stirlingRest(x) {
  let rest = 0;
  while (x < 10) {
    const log = x < 1 ? Math.log1p(x) - Math.log(x) : Math.log1p(1 / x);
    rest += (x + 0.5) * log - 1;
    x += 1;
  }
  const y = 1 / (x * x);
  const series =
    1 / 12 -
    y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360 - y / 156)))));
  return rest + series / x;
}

function logGamma(x) {
  return (x - 0.5) * Math.log(x) - x + HALF_LOG_2PI + stirlingRest(x);
}

// log Γ(a + k) − log Γ(a), for k ≥ 0.
function logRising(a, k) {
  if (k === 0) return 0;
  if (a < 10) return logGamma(a + k) - logGamma(a);
  const log = (a + k - 0.5) * Math.log1p(k / a) + k * (Math.log(a) - 1);
  return log + stirlingRest(a + k) - stirlingRest(a);
}

// log(1 + t) − t, without cancellation near zero.
function log1pRest(t) {
  if (Math.abs(t) > 0.2) return Math.log1p(t) - t;
  const r = t / (2 + t);
  const square = r * r;
  let term = 1;
  let sum = 0;
  for (let i = 3; i < 40; i += 2) {
    sum += term / i;
    term *= square;
    if (term < 1e-18) break;
  }
  return r * (2 * square * sum - t);
}

// a log(a / m) + m − a: how far m is from a.
function deviance(a, m) {
  return -a * log1pRest((m - a) / a);
}

// log of x^a (1 − x)^b / B(a, b); `y` is 1 − x.
function logBetaFront(x, y, a, b) {
  const n = a + b;
  if (a < 1 || b < 1) {
    const small = Math.min(a, b);
    const logBeta = logGamma(small) - logRising(Math.max(a, b), small);
    const logX = x > 0.5 ? Math.log1p(-y) : Math.log(x);
    const logY = y > 0.5 ? Math.log1p(-x) : Math.log(y);
    return a * logX + b * logY - logBeta;
  }
  const rest = stirlingRest(n) - stirlingRest(a) - stirlingRest(b);
  const scale = 0.5 * (Math.log(a) + Math.log(b / n)) - HALF_LOG_2PI;
  return scale + rest - deviance(a, n * x) - deviance(b, n * y);
}

// log of x^a e^−x / Γ(a).
function logGammaFront(x, a) {
  if (a < 1) return a * Math.log(x) - x - logGamma(a);
  return 0.5 * Math.log(a) - HALF_LOG_2PI - stirlingRest(a) - deviance(a, x);
}

// --- Integrals -----------------------------------------------------------------------------------

// Gauss and Legendre's ten points, one half of them.
const POINTS = [
  0.14887433898163122, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845,
  0.9739065285171717,
];
const WEIGHTS = [
  0.29552422471475287, 0.26926671930999635, 0.21908636251598204, 0.1494513491505806,
  0.06667134430868814,
];

// Of a bell-shaped density, from one place to another, in steps of about its standard deviation.
function integral(density, from, to, sd) {
  const panels = Math.max(1, Math.ceil((to - from) / sd));
  const half = (to - from) / (2 * panels);
  let sum = 0;
  for (let panel = 0; panel < panels; panel++) {
    const middle = from + (2 * panel + 1) * half;
    for (let i = 0; i < POINTS.length; i++) {
      const off = half * POINTS[i];
      sum += WEIGHTS[i] * (density(middle - off) + density(middle + off));
    }
  }
  return sum * half;
}

const BELL = 2000; // parameters from which a density is nearly a bell, and fractions converge slowly
const FAR = 10; // standard deviations, beyond which a bell holds nothing that counts

function bellCdf(density, x, mean, sd, start, end) {
  if (x < mean) return integral(density, Math.max(start, mean - FAR * sd, x - FAR * sd), x, sd);
  return 1 - integral(density, x, Math.min(end, mean + FAR * sd, x + FAR * sd), sd);
}

// --- The regularised incomplete beta function ----------------------------------------------------

const TINY = 1e-300;
const EPS = 1e-16;

function away(x) {
  return Math.abs(x) < TINY ? TINY : x;
}

// The continued fraction of Didonato and Morris (1992) for a, b > 1; `off` is a − (a + b) x ≥ 0,
// which would lose its digits if it were found here.
function betaFraction(x, y, a, b, off) {
  const first = 1 + 1 / a;
  let before = [0, 1];
  let now = [1, (1 + off) / first];
  let ratio = now[0] / now[1];
  let p = 1;
  let s = a + 1;
  for (let n = 1; n < 100000; n++) {
    const w = n * (b - n) * x;
    const alpha = p * (p + b / a) * (a / s) ** 2 * (w * x);
    const step = (n / a + 1) / (first + (2 * n) / a);
    const beta = n + w / s + step * (1 + off + n * (y + 1));
    p = n / a + 1;
    s += 2;
    const next = [alpha * before[0] + beta * now[0], alpha * before[1] + beta * now[1]];
    const last = ratio;
    ratio = next[0] / next[1];
    if (Math.abs(ratio - last) <= EPS * ratio) break;
    before = [now[0] / next[1], now[1] / next[1]];
    now = [ratio, 1];
  }
  return ratio;
}

function betaBell(x, a, b) {
  const n = a + b;
  const sd = Math.sqrt(((a / n) * (b / n)) / (n + 1));
  const density = (t) =>
    t > 0 && t < 1 ? Math.exp(logBetaFront(t, 1 - t, a, b)) / (t * (1 - t)) : 0;
  return bellCdf(density, x, a / n, sd, 0, 1);
}

// P(at most x) of Be(a, b).
function betaCdf(x, a, b) {
  if (!(x > 0)) return x === x ? 0 : NaN;
  if (x >= 1) return 1;
  const y = 1 - x;
  const n = a + b;
  if (a <= 1) return Math.min(1, betaCdf(x, a + 1, b) + Math.exp(logBetaFront(x, y, a, b)) / a);
  if (b <= 1) return Math.max(0, betaCdf(x, a, b + 1) - Math.exp(logBetaFront(x, y, a, b)) / b);
  if (a > BELL && b > BELL) {
    const held = a > b ? 1 - betaBell(y, b, a) : betaBell(x, a, b); // no digits lost near one
    return Math.min(1, Math.max(0, held));
  }
  const front = Math.exp(logBetaFront(x, y, a, b));
  const off = a > b ? n * y - b : a - n * x;
  if (off >= 0) return Math.min(1, front * betaFraction(x, y, a, b, off));
  return Math.max(0, 1 - front * betaFraction(y, x, b, a, -off));
}

// --- The regularised incomplete gamma function ---------------------------------------------------

// P(at most x) of Ga(a, 1).
function gammaCdf(x, a) {
  if (!(x > 0)) return x === x ? 0 : NaN;
  if (x === Infinity) return 1;
  if (a > BELL) {
    const density = (t) => (t > 0 ? Math.exp(logGammaFront(t, a)) / t : 0);
    return Math.min(1, Math.max(0, bellCdf(density, x, a, Math.sqrt(a), 0, Infinity)));
  }
  const front = Math.exp(logGammaFront(x, a));
  if (x < a + 1) {
    let term = 1 / a;
    let sum = term;
    for (let i = 1; i < 100000 && term > sum * EPS; i++) {
      term *= x / (a + i);
      sum += term;
    }
    return Math.min(1, front * sum);
  }
  return 1 - front * gammaFraction(x, a);
}

// Γ(a, x) / (x^a e^−x).
function gammaFraction(x, a) {
  let b = x + 1 - a;
  let c = 1 / TINY;
  let d = 1 / away(b);
  let h = d;
  for (let i = 1; i < 100000; i++) {
    const an = -i * (i - a);
    b += 2;
    d = 1 / away(an * d + b);
    c = away(b + an / c);
    h *= d * c;
    if (Math.abs(d * c - 1) < 2 * EPS) break;
  }
  return h;
}

// P(at most z) of the standard normal distribution.
function normalCdf(z) {
  const square = (z * z) / 2;
  if (square < 1.5) return 0.5 + 0.5 * Math.sign(z) * gammaCdf(square, 0.5);
  const tail =
    square > 700 ? 0 : 0.5 * Math.exp(logGammaFront(square, 0.5)) * gammaFraction(square, 0.5);
  return z < 0 ? tail : 1 - tail;
}
