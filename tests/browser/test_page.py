"""The page in a browser: quiet, offline, accessible, quick, and as exact as Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import axe_playwright_python
import numpy as np
import pytest
import scipy.special
import scipy.stats
from pages import EVIL, fitted, written

from ldf.distributions import mixture
from ldf.learned import Said

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")

pytestmark = pytest.mark.browser

DESIGN = {
    "binomial": lambda n, k: {"successes": [k], "trials": [n]},
    "poisson": lambda n, k: {"count": [k], "exposure": [n]},
    "gaussian": lambda n, k: {"mean": [k], "variance": [n]},
}
ASKED = """([unit, n, k]) => {
  const { mean, lower, upper, sd } = ldf.after(unit, n, k);
  return [mean, lower, upper, sd];
}"""


# --- Safe and quiet -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian", "multinomial"])
def test_a_page_asks_for_nothing_and_complains_of_nothing(opening: Any, family: str) -> None:
    path = written(family)
    opened = opening(path)
    page = opened.page
    for key in page.eval_on_selector_all("#quantity option", "all => all.map(o => o.value)"):
        page.select_option("#quantity", key)
    page.keyboard.press("Tab")
    page.mouse.wheel(0, 4000)
    page.wait_for_timeout(100)
    assert opened.complaints == []
    assert opened.requests == [path.as_uri()]


def test_a_label_that_would_run_is_only_text(opening: Any) -> None:
    opened = opening(written())
    page = opened.page
    page.fill("#search", "onerror")
    assert page.inner_text("#table-body tr th").startswith(EVIL)
    page.click("#table-body tr th")
    assert page.inner_text("#card-title") == EVIL
    assert EVIL in page.inner_text("#card-body")  # a column's name
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert opened.complaints == []


# --- Exact --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian"])
def test_what_if_is_what_python_says(opening: Any, family: str) -> None:
    """The posterior after further data, in every tenth unit."""
    model, frame = fitted(family)
    law = model.posterior(frame).distribution
    page = opening(written(family)).page
    rng = np.random.default_rng(0)
    for unit in range(0, len(frame), 10):
        n = float(rng.integers(1, 200)) if family == "binomial" else float(rng.uniform(0.1, 20))
        k = float(rng.integers(0, n + 1) if family != "gaussian" else rng.normal())
        share = np.asarray(law.weights)[:, unit : unit + 1]
        natural = law.components.natural[:, unit : unit + 1]
        said = Said(natural, natural.zero(), share)
        after = model.learned_.updated(
            said, {w: np.array(v) for w, v in DESIGN[family](n, k).items()}
        )
        expected = mixture(after.share, model.family_.posterior(after.natural))
        low, high = expected.interval(0.9)
        found = page.evaluate(ASKED, [unit, n, k])
        wanted = [expected.mean()[0], low[0], high[0], expected.sd()[0]]
        assert np.allclose(found, wanted, rtol=0, atol=1e-6)


def test_the_slider_moves_the_posterior(opening: Any) -> None:
    page = opening(written()).page
    before = page.inner_text("#whatif-result")
    page.fill("#whatif-design-number", "400")
    page.fill("#whatif-outcome-number", "4")
    after = page.inner_text("#whatif-result")
    assert after != before
    page.locator("#whatif-outcome").press("ArrowRight")
    assert page.input_value("#whatif-outcome-number") == "5"
    assert page.inner_text("#whatif-result") != after


def evaluated(page: Any, name: str, *columns: np.ndarray) -> np.ndarray:
    rows = np.stack(columns, 1).tolist()
    return np.array(page.evaluate(f"rows => rows.map(row => ldf.{name}(...row))", rows))


def test_special_functions_are_scipys(opening: Any) -> None:
    page = opening(written()).page
    rng = np.random.default_rng(0)
    x = 10 ** rng.uniform(-12, 15, 500)
    log_gamma = scipy.special.gammaln(x)
    assert np.allclose(evaluated(page, "logGamma", x), log_gamma, rtol=1e-13, atol=1e-13)
    a, b = 10 ** rng.uniform(-6, 9, (2, 500))
    law = scipy.stats.beta(a, b)
    at = np.clip(law.mean() + law.std() * rng.normal(0, 2, 500), 0, 1)
    wanted = scipy.special.betainc(a, b, at)
    assert np.allclose(evaluated(page, "betaCdf", at, a, b), wanted, rtol=0, atol=1e-10)
    a = 10 ** rng.uniform(-6, 6, 500)  # beyond, SciPy's own tails are off by 1e-6
    at = np.maximum(a + np.sqrt(a) * rng.normal(0, 2, 500), a * rng.random(500))
    wanted = scipy.special.gammainc(a, at)
    assert np.allclose(evaluated(page, "gammaCdf", at, a), wanted, rtol=0, atol=1e-10)
    z = rng.normal(0, 4, 500)
    wanted = scipy.special.ndtr(z)
    assert np.allclose(evaluated(page, "normalCdf", z), wanted, rtol=1e-10, atol=1e-300)


def test_huge_gammas_are_nearly_normal(opening: Any) -> None:
    """By the third-order expansion about the normal distribution, which is exact to 1e-9 here."""
    page = opening(written()).page
    a = 10.0 ** np.array([9, 10, 11, 12])
    z = np.array([-4.5, -1.0, 0.5, 3.0])
    cube = (9 * a) ** 0.5 * (
        (1 + z / np.sqrt(a)) ** (1 / 3) - (1 - 1 / (9 * a))
    )  # Wilson, Hilferty
    found = evaluated(page, "gammaCdf", a + z * np.sqrt(a), a)
    assert np.allclose(found, scipy.special.ndtr(cube), rtol=1e-5, atol=1e-9)


def test_rising_factorials_keep_their_digits(opening: Any) -> None:
    page = opening(written()).page
    a, k = np.array([1e15, 1e8, 3.0, 1e-9]), np.array([3.0, 12.0, 50.0, 1.0])
    wanted = [sum(np.log(x + i) for i in range(int(n))) for x, n in zip(a, k, strict=True)]
    assert np.allclose(evaluated(page, "logRising", a, k), wanted, rtol=1e-13)


# --- Usable -------------------------------------------------------------------------------------


def test_a_keyboard_reaches_every_unit(opening: Any) -> None:
    page = opening(written()).page
    page.focus("#table")
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    row = page.get_attribute("#table", "aria-activedescendant")
    label = page.inner_text(f"#{row} th").removesuffix(" ⚑")
    assert page.inner_text("#card-title") == label
    assert page.inner_text("#live").startswith(f"{label}: mean")


def test_a_click_on_the_map_picks_the_unit_there(opening: Any) -> None:
    page = opening(written()).page
    page.wait_for_timeout(100)
    before = page.inner_text("#card-title")
    box = page.locator("#map").bounding_box()
    for part in (0.3, 0.5, 0.7):
        page.mouse.click(box["x"] + part * box["width"], box["y"] + 0.5 * box["height"])
    assert page.inner_text("#card-title") != before


def test_heads_sort_and_words_find(opening: Any) -> None:
    page = opening(written()).page
    page.click("th[data-key=lower] button")
    highest = page.inner_text("#table-body tr th")
    page.click("th[data-key=lower] button")
    assert page.get_attribute("th[data-key=lower]", "aria-sort") == "ascending"
    assert page.inner_text("#table-body tr th") != highest
    page.select_option("#which", "unseen")
    assert page.inner_text("#table-help").startswith("20 of 120 units")
    page.fill("#search", "v11")
    assert page.inner_text("#table-help").startswith("1 of 120 units")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(opening: Any, scheme: str, width: int) -> None:
    page = opening(written(), width=width, color_scheme=scheme).page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.evaluate("document.querySelectorAll('details').forEach(d => (d.open = true))")
    found = page.evaluate("axe.run()")["violations"]
    serious = [
        (rule["id"], node["html"]) for rule in found for node in rule["nodes"]
        if rule["impact"] in ("serious", "critical")
    ]  # fmt: skip
    assert serious == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_the_screen(opening: Any, width: int) -> None:
    page = opening(written(), width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(
    opening: Any, tmp_path: Path
) -> None:
    model, frame = fitted()
    shown = model.posterior(frame).explore(geometry=("east", "north"))._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><script>ldf = 1</script>{shown}")
    opened = opening(tmp_path / "notebook.html")
    inside = opened.page.frames[1]
    inside.wait_for_function("window.ldf && window.ldf.after")
    assert inside.locator("#table-body tr[id]").count() > 5
    assert opened.complaints == []
    reached = "() => { try { return String(parent.document) } catch (e) { return e.name } }"
    assert inside.evaluate(reached) == "SecurityError"


def test_paper_has_rows_of_the_table_and_no_empty_pages(opening: Any) -> None:
    page = opening(written(), width=794).page
    page.emulate_media(media="print")
    assert page.locator("#table-body tr").count() == 100
    assert page.locator("#table-body tr.space").count() == 0
    assert page.inner_text("#table-help").startswith("The first 100 of 120 of 120 units, by ")
    page.emulate_media(media="screen")
    page.locator("#table-help", has_text="120 of 120 units. Arrow keys").wait_for()


# --- Many units ---------------------------------------------------------------------------------

MANY = 10_000
DRAWN = """() => new Promise(done =>
  requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"""
TOOK = """([selector, value, event]) => {
  const one = document.querySelector(selector), start = performance.now();
  if (value !== null) one.value = value;
  one.dispatchEvent(new Event(event, { bubbles: true }));
  return performance.now() - start;
}"""


def milliseconds(opening: Callable[..., Any], path: Path) -> float:
    """From the start of loading until the first picture, by the page's own clock."""
    return opening(path).page.evaluate(DRAWN)


@pytest.mark.full
def test_ten_thousand_units_stay_smooth(opening: Any) -> None:
    few, large = written(rows=100), written(rows=MANY)
    assert large.stat().st_size < 15e6
    times = [(milliseconds(opening, few), milliseconds(opening, large)) for _ in range(3)]
    short, long = (median(each) for each in zip(*times, strict=True))
    assert long < 3 * short
    page = opening(large).page
    page.wait_for_timeout(300)
    for act in (
        ["#table-body tr:nth-child(3) th", None, "click"],
        ["#quantity", "entropy", "change"],
        ["#whatif-design", "30", "input"],
        ["th[data-key=upper] button", None, "click"],
        ["#search", "77", "input"],
    ):
        assert median(page.evaluate(TOOK, act) for _ in range(3)) < 100, act
