"""The paper's studies, small: what they claim is what their numbers say, and a folder tells it."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib import pyplot

import ldf
from ldf import assess, cli, compiled, plot
from ldf.data import read
from ldf.datasets import FEATURES, counties, district
from ldf.datasets.district import SHAPE
from ldf.mappings import Linear
from ldf.model import Model
from ldf.solve import solve
from ldf.spec import Spec
from ldf.statistic import Statistic
from ldf.studies import electrification, homicide, reproduce
from ldf.studies.claims import Claim, as_markdown, better, middle, of_ranks, share
from ldf.studies.figure import Figure
from ldf.studies.folder import NO_CAUSES, write
from ldf.studies.homicide.claims import modes
from ldf.studies.homicide.study import EM, FULL_EM, at_map
from ldf.studies.protocol import Protocol

SMALL = Protocol(folds=3, restarts=1, draws=2, epochs=20, defaults=False)


@pytest.fixture(scope="module")
def cells() -> Any:
    return district(seed=1)


@pytest.fixture(scope="module")
def section_5(cells: Any) -> electrification.Electrification:
    return electrification.run(
        cells.columns(),
        {"successes": "electrified", "trials": "buildings"},
        list(FEATURES),
        protocol=SMALL,
        printed=True,
        place=SHAPE,
        theta=cells.theta,
        information=cells.pseudo_successes + cells.pseudo_failures,
    )


@pytest.fixture(scope="module")
def figures_5(section_5: electrification.Electrification) -> dict[str, Figure]:
    return {figure.name: figure for figure in electrification.figures(section_5)}


@pytest.fixture(scope="module")
def section_6() -> homicide.Homicide:
    all_of = counties()
    rows = np.sort(np.random.default_rng(0).permutation(len(all_of.fips))[:150])
    frame = {name: values[rows] for name, values in all_of.columns().items()}
    frame["thousands"] = frame["person_years"] / 1000
    again = {"count": frame["homicides"], "exposure": frame["thousands"]}
    some = {**again, "count": np.where(np.arange(150) < 100, frame["homicides"], np.nan)}
    return homicide.run(
        frame,
        {"count": "homicides", "exposure": "thousands"},
        list(all_of.names[:4]),
        county=frame["county"],
        state=frame["state"],
        protocol=replace(SMALL, folds=2, draws=1),
        later={"1991": again, "1992": some},
    )


@pytest.fixture(scope="module")
def figures_6(section_6: homicide.Homicide) -> dict[str, Figure]:
    return {figure.name: figure for figure in homicide.figures(section_6)}


def said_of(claims: list[Claim], words: str) -> str:
    (found,) = [claim.measured for claim in claims if words in claim.what]
    return found


# --- Section 5 ----------------------------------------------------------------------------------


def test_the_networks_are_the_papers() -> None:
    from ldf.studies.electrification.study import NETWORK, PRINTED

    weights = NETWORK.init(np.random.default_rng(0), 4, 2)
    assert sum(leaf.size for leaf in jax.tree.leaves(weights)) == 146
    assert (PRINTED.learning_rate, PRINTED.penalty) == (0.005418707, 1.74e-7)


def test_printed_values_are_used(section_5: electrification.Electrification) -> None:
    prior = section_5.said.natural.successes - section_5.said.pseudo.successes
    np.testing.assert_allclose(prior, 0.005316, rtol=1e-9)
    (member,) = section_5.model.ensemble.members
    assert member.penalty == 1.74e-7
    regression = section_5.cv.answers["beta-binomial"]
    np.testing.assert_allclose(
        regression.said.natural.failures - regression.said.pseudo.failures, 1.55, rtol=1e-9
    )


def test_printed_values_reach_what_is_trained() -> None:
    """Of Section 5.3 and Appendix C, and the reference that the objective compares with."""
    settings, others = electrification.study.asked(SMALL, printed=True)
    frame = district(seed=1).columns()
    primary = {"successes": "electrified", "trials": "buildings"}
    model = ldf.Fusion(ldf.Binomial(), primary, list(FEATURES), **settings)
    spec = model.spec(read(frame, ldf.Binomial(), model.columns()))
    (member,) = spec.ensemble.members
    assert (member.learning_rate, member.penalty) == (0.005418707, 1.74e-7)
    assert (member.preprocess, spec.balance) == ("standard", 5)
    assert others["binomial"].ensemble.members[0].penalty == 0.00123
    compound = others["beta-binomial"]
    assert [of.penalty for of in compound.ensemble.members] == [5.214e-5]
    for prior in (spec.prior, compound.prior):
        assert isinstance(prior, Statistic)
        assert [float(of) for of in prior.coordinates()] == [0.005316, 1.55]
    assert isinstance(spec.reference, Spec)
    assert spec.reference.ensemble == compound.ensemble
    assert spec.reference.prior is compound.prior
    searched, others = electrification.study.asked(SMALL)
    assert searched["reference"] is others["beta-binomial"]


def test_printed_values_are_those_that_were_trained_by(
    section_5: electrification.Electrification,
) -> None:
    """The study's regression is the one that is solved with the printed penalty and prior."""
    cv, family = section_5.cv, ldf.Binomial()
    (member,) = cv.answers["beta-binomial"].learned.trained
    y = {name: np.where(cv.data.seen, values, 0.0) for name, values in cv.data.y.items()}
    weight = (cv.data.seen & (cv.split.fold != 0)).astype(float)
    linear = Model(family, Linear(True))
    prior = family.prior(successes=0.005316, failures=1.55)
    ground = member.ground._replace(prior=prior)
    z = member.preprocess.apply(cv.data.x)
    found = solve(linear, ground, z, y, weight, 5.214e-5).weights
    for name, own in member.weights.items():
        np.testing.assert_allclose(own[0], found[name], rtol=1e-4, atol=1e-5)


def test_units_with_primary_data_are_answered_for_by_a_fold_that_has_not_seen_them(
    section_5: electrification.Electrification,
) -> None:
    seen = section_5.cv.data.seen
    own = section_5.cv.answers["ldf"].said.pseudo.successes
    alone = section_5.model.learned_.said(section_5.cv.data.x).pseudo.successes
    here = section_5.said.pseudo.successes
    np.testing.assert_array_equal(here[:, seen], own[:, seen])
    np.testing.assert_array_equal(here[:, ~seen], alone[:, ~seen])
    assert (here[:, seen] != alone[:, seen]).mean() > 0.9


def test_claims_of_section_5_are_its_numbers(section_5: electrification.Electrification) -> None:
    claims = electrification.claims(section_5)
    cv = section_5.cv
    score = {name: answer.log_score[cv.counted] for name, answer in cv.answers.items()}
    gain = score["ldf"] - score["binomial"]
    assert said_of(claims, "better than binomial").startswith(f"{(gain > 0).mean():.1%}")
    assert said_of(claims, "75th") == f"{np.quantile(gain, 0.75):.2f}"
    entropy = [cv.posterior(name).entropy() for name in ("ldf", "beta-binomial")]
    assert said_of(claims, "lower entropy").startswith(f"{(entropy[0] < entropy[1]).mean():.1%}")
    inside = cv.coverage("ldf", (0.9,))[0]["observed"]
    assert said_of(claims, "narrowest 90 %").startswith(f"{inside:.1%}")
    assert said_of(claims, "few trainable parameters") == "146, of 4 columns"
    assert said_of(claims, "no building").startswith(f"{cv.counted.sum()} of {cv.data.seen.sum()}")
    rate = cv.data.y["successes"][cv.counted] / cv.data.y["trials"][cv.counted]
    assert np.quantile(rate, 0.4) == 0  # so that two of the four edges are one
    lowest = int((rate < np.quantile(rate, 0.6)).sum())
    assert said_of(claims, "five quantiles").startswith(f"3 classes, of {lowest}, ")
    assert electrification.study.CLASSES == section_5.model.balance == 5


def test_what_the_paper_does_not_say_does_not_stand_under_its_words(
    section_5: electrification.Electrification, section_6: homicide.Homicide
) -> None:
    for claims in (electrification.claims(section_5), homicide.claims(section_6)):
        paper, own = as_markdown(claims).split("\n\n")
        assert paper.startswith("| section | the paper says |")
        assert own.startswith("| not in the paper |")
        for claim in claims:
            what = claim.what.replace("|", "\\|")
            assert (f"| {what} |" in paper) == bool(claim.section)
            assert (f"| {what} |" in own) == (not claim.section)
            assert claim.section or not claim.paper
    beyond = [claim.what for claim in homicide.claims(section_6) if not claim.section]
    for words in ("full M-step", "own count", "penalty of 10", "mean held-out log score"):
        assert any(words in what for what in beyond), words


def test_a_tie_is_half_a_unit_in_words_and_in_figures() -> None:
    one, other = np.array([1.0, 2.0, 3.0, -np.inf]), np.array([1.0, 1.0, 4.0, -np.inf])
    assert better(one, other).startswith("50.0% ± ")
    assert better(one, other).endswith(" of 4")
    assert plot.Differences.of({"a": (one, other)}).summary()[0]["better"] == 0.5
    assert plot.Entropies(one[:3], other[:3], rate=one[:3]).surer == 0.5
    np.testing.assert_array_equal(assess.wins(one[:3] - other[:3]), [0.5, 1, 0])
    assert share([1, 1, 0, 0]) == "50.0% ± 25.0% of 4"
    assert share([]) == middle(np.empty(0)) == "there are none"
    assert of_ranks(np.array([1, 2, 3]), np.array([2, 9, 10])) == "+1.00"
    assert "the same everywhere" in of_ranks(np.zeros(3), np.arange(3.0))


def test_the_truth_is_in_the_table(section_5: electrification.Electrification, cells: Any) -> None:
    claims = electrification.claims(section_5)
    new = np.isnan(cells.buildings)
    law = section_5.model.posterior(cells.columns(), given="auxiliary")
    low, high = law.interval(0.9)
    inside = ((low <= cells.theta) & (cells.theta <= high))[new].mean()
    assert f"{inside:.1%} at 90%" in said_of(claims, "without primary data")

    successes, failures = section_5.said.natural.coordinates()
    y, n = (np.nan_to_num(of) for of in (cells.electrified, cells.buildings))
    for words, a, b in (
        ("held out", successes[0], failures[0]),
        ("own data too", successes[0] + y, failures[0] + n - y),
    ):
        post = ldf.Binomial().posterior(ldf.Binomial().prior(a[~new], b[~new]))
        low, high = post.interval(0.9)
        inside = ((low <= cells.theta[~new]) & (cells.theta[~new] <= high)).mean()
        assert f"{inside:.1%} at 90%" in said_of(claims, words)


def test_figures_of_section_5_show_its_numbers(
    section_5: electrification.Electrification, figures_5: dict[str, Figure]
) -> None:
    found = figures_5
    assert len(found) == 12
    counted = section_5.cv.counted
    worth = found["statistics"].table
    mine = worth[worth["model"] == "ldf"]
    np.testing.assert_allclose(mine["amount"], section_5.said.mean().n[counted])
    rows = np.flatnonzero(counted)[100:150]
    shown = found["posteriors"].table["unit"].astype(str).unique()
    assert list(shown) == [str(label) for label in section_5.cv.units.label[rows]]
    assert found["map"].table["column"][53] == 1  # the second of the second row
    both = found["map"].table["mean of θ"].to_numpy()
    data = section_5.cv.data
    i = int(rows[0])
    successes = section_5.said.natural.successes[0, i] + data.y["successes"][i]
    failures = section_5.said.natural.failures[0, i] + data.y["trials"][i] - data.y["successes"][i]
    assert both[i] == pytest.approx(successes / (successes + failures))


def test_a_figures_file_holds_all_that_its_panels_show(
    section_5: electrification.Electrification, figures_5: dict[str, Figure]
) -> None:
    found = {name: figure.table for name, figure in figures_5.items()}
    two = found["two_regions"]
    assert two["panel"].unique().tolist() == ["features", "posterior", "predictive"]
    for panel in ("posterior", "predictive"):
        mass = two[(two["panel"] == panel) & (two["model"] == "ldf")].groupby("unit")["mass"].sum()
        assert len(mass) == 2
        np.testing.assert_allclose(mass, 1, atol=2e-3)
    y = section_5.cv.data.y
    primary, auxiliary = found["primary_data"], found["auxiliary_data"]
    shown = primary[(primary["panel"] == "map") & (primary["column"] == "N")]["value"]
    np.testing.assert_array_equal(shown.dropna(), y["trials"][section_5.cv.counted])
    counts = primary[(primary["panel"] == "histogram") & (primary["column"] == "N")]["count"]
    assert counts.sum() == section_5.cv.counted.sum()
    x = section_5.cv.data.x[:, 1]
    shown = auxiliary[(auxiliary["panel"] == "map") & (auxiliary["column"] == FEATURES[1])]["value"]
    np.testing.assert_allclose(shown, (x - x.mean()) / x.std())


def test_the_regression_is_a_dashed_line_a_fold(
    section_5: electrification.Electrification, figures_5: dict[str, Figure]
) -> None:
    (axis,) = figures_5["statistics"].draw().axes
    levels = sorted(line.get_ydata()[0] for line in axis.get_lines())
    fold = section_5.cv.split.fold[section_5.cv.counted]
    n = section_5.cv.answers["beta-binomial"].of(section_5.cv.counted).pseudo.n[0]
    np.testing.assert_allclose(levels, sorted(n[fold == f][0] for f in range(3)), rtol=1e-6)
    assert {line.get_linestyle() for line in axis.get_lines()} == {"--"}
    pyplot.close("all")


# --- Section 6 ----------------------------------------------------------------------------------


def test_clusters_go_from_fewest_to_most(section_6: homicide.Homicide) -> None:
    sizes = np.bincount(section_6.assignment.argmax(0), minlength=3)
    assert (np.diff(sizes) >= 0).all()
    np.testing.assert_allclose(section_6.assignment.sum(0), 1)
    assert section_6.entropy.max() <= np.log(3) + 1e-9


def test_the_assignment_is_bayes_rule(section_6: homicide.Homicide) -> None:
    """p(z = k | x, y) ∝ β_k p(y | x, z = k), and a, b are those of the likeliest."""
    y = section_6.cv.data.y
    each = ldf.Poisson().log_predictive(section_6.said.natural, **y)
    joint = section_6.said.share * np.exp(each)
    np.testing.assert_allclose(section_6.assignment, joint / joint.sum(0), rtol=1e-6, atol=1e-9)
    a, b = at_map(section_6)
    k = int(section_6.assignment[:, 5].argmax())
    assert (a[5], b[5]) == (section_6.said.pseudo.t[k, 5], section_6.said.pseudo.n[k, 5])


def test_claims_of_section_6_are_its_numbers(section_6: homicide.Homicide) -> None:
    claims = homicide.claims(section_6)
    counted = section_6.cv.counted
    score = {name: own.log_score[counted] for name, own in section_6.cv.answers.items()}
    for name, words in ((EM, "three mappings"), (FULL_EM, "with a full M-step")):
        wins = (score[name] > score["gamma-poisson"]).mean()
        assert said_of(claims, words).startswith(f"{wins:.1%}")
    assert "log 3 = 1.099" in said_of(claims, "largest entropy")
    plain = assess.score_difference(score["ldf"], score["poisson"]).better
    assert said_of(claims, "against Poisson").startswith(f"{plain:.1%}")
    people, label = section_6.cv.data.y["exposure"], section_6.assignment.argmax(0)
    small = people <= np.quantile(people, 0.25)
    assert f"{(label[small] > 0).mean():.1%}" in said_of(claims, "rural")
    rank = scipy.stats.spearmanr(label, people).statistic
    assert said_of(claims, "direct population").endswith(f"{rank:+.2f}")
    pick = label, np.arange(len(label))
    a, b = (np.asarray(of)[pick] for of in section_6.said.natural.coordinates())
    own = at_map(section_6)
    together = np.corrcoef(np.log(own[1]), np.log(a / b**2))[0, 1]
    assert f"logarithms {together:+.2f};" in said_of(claims, "posterior variance")
    half = np.median(a / b**2 * own[1] / (own[0] / own[1]))
    assert f"rate is median {half:.2f} (" in said_of(claims, "posterior variance")


def test_low_rates_are_those_that_the_regression_holds_for_the_lowest(
    section_6: homicide.Homicide,
) -> None:
    claims = homicide.claims(section_6)
    cv, sd, mean = section_6.cv, {}, {}
    for name in ("ldf", "gamma-poisson"):
        a, b = (np.asarray(of)[0] for of in cv.answers[name].of(cv.counted).natural.coordinates())
        sd[name], mean[name] = np.sqrt(a) / b, a / b
    low = mean["gamma-poisson"] <= np.quantile(mean["gamma-poisson"], 0.25)
    narrower = (sd["gamma-poisson"] < sd["ldf"])[low].mean()
    assert f"in {narrower:.1%} ± " in said_of(claims, "highly concentrated")
    law = cv.predictive("gamma-poisson")
    low_end, high_end = law.interval(0.9)
    y = cv.data.y["count"][cv.counted]
    inside = ((low_end <= y) & (y <= high_end))[low].mean()
    assert f"hold: {cv_words(cv, low)}" in said_of(claims, "overconfident")
    assert f"{inside:.1%} of " in cv_words(cv, low)


def cv_words(cv: Any, low: np.ndarray) -> str:
    y = cv.data.y["count"][cv.counted]
    rows = {n: assess.coverage(cv.predictive(n), y, (0.9,), low) for n in ("ldf", "gamma-poisson")}
    each = (f"{of.observed[0]:.1%} of {of.expected[0]:.1%} ({n})" for n, of in rows.items())
    return " against ".join(each)


def test_other_periods_are_foretold_with_and_without_each_source(
    section_6: homicide.Homicide, figures_6: dict[str, Figure]
) -> None:
    assert list(section_6.later) == ["1991", "1992"]
    all_of, some = section_6.later.values()
    assert len(all_of["x"]) == 150
    assert len(some["x"]) == 100
    np.testing.assert_allclose(some["x"], all_of["x"][:100])
    claims = homicide.claims(section_6)
    for period, score in section_6.later.items():
        both = score["x and this period"]
        text = said_of(claims, f"counts of {period}, foretold by ldf")
        assert text.startswith(f"mean log score {both.mean():.4f}; ")
        for name in ("x", "this period"):
            found = assess.score_difference(both, score[name], score["state"])
            assert f"{found.mean:+.4f} ± {found.standard_error:.4f}" in text
    assert figures_6["other_periods"].table["comparison"].nunique() == 4


def test_the_largest_county_of_each_state_is_shown(
    section_6: homicide.Homicide, figures_6: dict[str, Figure]
) -> None:
    rows = section_6.largest
    exposure = section_6.cv.data.y["exposure"]
    frame = pd.DataFrame({"state": section_6.state, "people": exposure})
    np.testing.assert_array_equal(rows, frame.groupby("state")["people"].idxmax())
    assert figures_6["posteriors"].table["unit"].nunique() == len(rows)
    assert "map_mean" not in figures_6  # there are no shapes


def test_peaks_are_counted() -> None:
    """Of a gamma with one peak, one that falls from zero on, and a mixture with two."""
    from ldf.distributions import mixture

    family = ldf.Poisson()

    def gamma(counts: list[float], exposures: list[float]) -> Any:
        return family.posterior(family.prior(count=np.array(counts), exposure=np.array(exposures)))

    np.testing.assert_array_equal(modes(gamma([9.0, 0.5], [3.0, 3.0])), [1, 1])
    two = mixture(np.full((2, 1), 0.5), gamma([[50.0], [50.0]], [[50.0], [10.0]]))
    np.testing.assert_array_equal(modes(two), [2])


# --- folders and the command line ---------------------------------------------------------------


def test_a_folder_is_whole_and_nothing_is_overwritten(
    section_5: electrification.Electrification, figures_5: dict[str, Figure], tmp_path: Path
) -> None:
    figures = list(figures_5.values())[:2]
    claims = electrification.claims(section_5)
    out = tmp_path / "deep" / "study"
    story = ["About.", *electrification.story(section_5)]
    written = write(out, "A study", story, figures, claims, {})
    names = {path.name for path in written}
    assert {"README.md", "claims.csv", "map.png", "map.svg", "map.csv"} <= names
    readme = (out / "README.md").read_text(encoding="utf-8")
    assert as_markdown(claims) in readme
    assert all(f"\n\n{words}\n\n" in readme for words in story)
    assert NO_CAUSES in readme
    assert said_of(claims, "better than beta-binomial") in story[1]
    assert said_of(claims, "held out") in story[3]
    assert all((out / target).exists() for target in re.findall(r"\]\(([^)]+)\)", readme))
    assert list(pd.read_csv(out / "claims.csv")["what"]) == [claim.what for claim in claims]
    before = {path: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ldf.DataError, match="not empty"):
        write(out, "Another", ["About."], [], claims, {})
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in out.parent.iterdir()] == ["study"]


@pytest.mark.parametrize(
    ("which", "lacking"), [("electrification", "households"), ("homicide", "fips")]
)
def test_a_file_that_lacks_a_column_is_refused_in_a_sentence(
    which: str,
    lacking: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, out = tmp_path / "survey.csv", tmp_path / "out"
    pd.DataFrame({"id": [1], "electrified": [1], "lights": [0.5]}).to_csv(file, index=False)
    monkeypatch.setattr(compiled, "keep_compiled", lambda: None)
    command = ["ldf", "reproduce", which, "--data", str(file), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ldf: column '{lacking}' is not in the file")
    assert said.count("\n") == 1
    assert not out.exists()


def files_of(folder: Path) -> str:
    """All that is written in a folder: figures of SVG say their words in comments."""
    text = [path.read_bytes().decode("utf-8", "replace") for path in folder.iterdir()]
    return "\n".join([*(path.name for path in folder.iterdir()), *text])


def test_sensitive_columns_of_a_survey_go_by_number_wherever_something_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    lights, households = rng.normal(size=120), rng.integers(5, 30, 120)
    survey = pd.DataFrame(
        {
            "id": [f"area{i}" for i in range(120)],
            "lat": rng.uniform(-2, -1, 120), "lon": rng.uniform(30, 31, 120),
            "lights": lights, "speaks_mizzle": rng.uniform(size=120),
            "village_kin": rng.choice(["quorl", "brask", "vent"], 120),
            "electrified": rng.binomial(households, 1 / (1 + np.exp(-lights))),
            "households": households,
        }
    )  # fmt: skip
    file, out = tmp_path / "survey.csv", tmp_path / "out"
    survey.to_csv(file, index=False)
    said: list[str] = []
    tiny = Protocol(folds=2, restarts=1, draws=1, epochs=3, defaults=False)
    reproduce.reproduce_electrification(
        out, file, ["lights", "speaks_mizzle", "village_kin"], id="id",
        sensitive=["speaks_mizzle", "village_kin"], protocol=tiny, say=said.append,
    )  # fmt: skip
    printed = capsys.readouterr()
    everything = "\n".join([*said, printed.out, printed.err, files_of(out)])
    for word in ("speaks_mizzle", "village_kin", "quorl", "brask"):
        assert word not in everything, word
    assert said[-1] == "auxiliary (3): lights, feature #2, feature #3"
    regions = pd.read_csv(out / "two_regions.csv")
    shown = ["lights", "feature #2", *(f"feature #3 ({k})" for k in (1, 2, 3))]
    assert regions["feature"].dropna().unique().tolist() == shown
    readme = (out / "README.md").read_text(encoding="utf-8")
    named = "--auxiliary 'lights,feature #2,feature #3' --sensitive 'feature #2,feature #3'"
    assert named in readme
    assert "--folds 2 --restarts 1 --draws 1 --seed 0" in readme
    assert "No causal reading is offered" in readme
    assert "120 units, of which 120 have primary data" in readme


def test_names_that_tell_of_ethnicity_are_masked_unless_others_are_named() -> None:
    names = ["poverty", "white_pct", "Hispanic share"]
    assert reproduce.masked(names, ()) == ("white_pct", "Hispanic share")
    assert reproduce.masked(names, ["poverty"]) == ("poverty",)


def test_other_years_are_found_and_thousands_are_no_feature() -> None:
    frame = {
        "population": np.array([2000.0, 500.0]),
        "homicides_2009": np.array([9.0, 9.0]),
        "homicides_2011": np.array([1.0, np.nan]),
        "population_2011": np.array([2100.0, 510.0]),
    }
    later = reproduce.other_years(frame)
    assert list(later) == ["2009", "2011"]
    np.testing.assert_array_equal(later["2011"]["count"], [1.0, np.nan])
    np.testing.assert_allclose(later["2011"]["exposure"], [2.1, 0.51])
    np.testing.assert_allclose(later["2009"]["exposure"], [2.0, 0.5])
    assert reproduce.other_years({"population": frame["population"]}) == {}
    named = {"exposure": "population"}
    assert reproduce.features({**frame, "poverty": [1, 2]}, named, ()) == ["poverty"]
