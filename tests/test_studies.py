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

import ldf
from ldf import cli, compiled
from ldf.datasets import FEATURES, counties, district
from ldf.datasets.district import SHAPE
from ldf.studies import electrification, homicide, reproduce
from ldf.studies.claims import Claim, as_markdown
from ldf.studies.folder import write
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
def section_6() -> homicide.Homicide:
    all_of = counties()
    rows = np.sort(np.random.default_rng(0).permutation(len(all_of.fips))[:150])
    frame = {name: values[rows] for name, values in all_of.columns().items()}
    frame["thousands"] = frame["person_years"] / 1000
    again = {"count": frame["homicides"], "exposure": frame["thousands"]}
    return homicide.run(
        frame,
        {"count": "homicides", "exposure": "thousands"},
        list(all_of.names[:4]),
        county=frame["county"],
        state=frame["state"],
        protocol=replace(SMALL, folds=2, draws=1),
        later=again,
    )


def said_of(claims: list[Claim], words: str) -> str:
    (found,) = [claim.measured for claim in claims if words in claim.says]
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


def test_the_truth_is_in_the_table(section_5: electrification.Electrification, cells: Any) -> None:
    claims = electrification.claims(section_5)
    new = np.isnan(cells.buildings)
    law = section_5.model.posterior(cells.columns(), given="auxiliary")
    low, high = law.interval(0.9)
    inside = ((low <= cells.theta) & (cells.theta <= high))[new].mean()
    assert f"{inside:.1%} at 90%" in said_of(claims, "hold the truth")


def test_figures_of_section_5_show_its_numbers(section_5: electrification.Electrification) -> None:
    found = {figure.name: figure for figure in electrification.figures(section_5)}
    assert len(found) == 12
    counted = section_5.cv.counted
    worth = found["statistics"].table
    mine = worth[worth["model"] == "ldf"]
    np.testing.assert_allclose(mine["amount"], section_5.said.mean().n[counted])
    rows = np.flatnonzero(counted)[100:150]
    shown = found["posteriors"].table["unit"].astype(str).unique()
    assert list(shown) == [str(label) for label in section_5.cv.units.label[rows]]
    both = found["map"].table["mean of θ"].to_numpy()
    data = section_5.cv.data
    i = int(rows[0])
    successes = section_5.said.natural.successes[0, i] + data.y["successes"][i]
    failures = section_5.said.natural.failures[0, i] + data.y["trials"][i] - data.y["successes"][i]
    assert both[i] == pytest.approx(successes / (successes + failures))


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
    for name, words in ((EM, "three mappings"), (FULL_EM, "and with a full M-step")):
        share = (score[name] > score["gamma-poisson"]).mean()
        assert said_of(claims, words).startswith(f"{share:.1%}")
    assert "log 3 = 1.099" in said_of(claims, "largest entropy")


def test_the_largest_county_of_each_state_is_shown(section_6: homicide.Homicide) -> None:
    rows = section_6.largest
    exposure = section_6.cv.data.y["exposure"]
    frame = pd.DataFrame({"state": section_6.state, "people": exposure})
    np.testing.assert_array_equal(rows, frame.groupby("state")["people"].idxmax())
    found = {figure.name: figure for figure in homicide.figures(section_6)}
    assert found["posteriors"].table["unit"].nunique() == len(rows)
    assert "map_mean" not in found  # there are no shapes


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
    section_5: electrification.Electrification, tmp_path: Path
) -> None:
    figures = electrification.figures(section_5)[:2]
    claims = electrification.claims(section_5)
    out = tmp_path / "deep" / "study"
    written = write(out, "A study", "About.", figures, claims, {}, "Nothing is causal.")
    names = {path.name for path in written}
    assert {"README.md", "claims.csv", "map.png", "map.svg", "map.csv"} <= names
    story = (out / "README.md").read_text(encoding="utf-8")
    assert as_markdown(claims) in story
    assert story.rstrip().endswith("Nothing is causal.")
    assert all((out / target).exists() for target in re.findall(r"\]\(([^)]+)\)", story))
    assert list(pd.read_csv(out / "claims.csv")["says"]) == [claim.says for claim in claims]
    before = {path: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ldf.DataError, match="not empty"):
        write(out, "Another", "About.", [], claims, {})
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


def test_another_year_is_found_and_thousands_are_no_feature() -> None:
    frame = {
        "population": np.array([2000.0, 500.0]),
        "homicides_2009": np.array([9.0, 9.0]),
        "homicides_2011": np.array([1.0, np.nan]),
        "population_2011": np.array([2100.0, 510.0]),
    }
    later = reproduce._other_year(frame)
    assert later is not None
    np.testing.assert_array_equal(later["count"], [1.0, np.nan])
    np.testing.assert_allclose(later["exposure"], [2.1, 0.51])
    assert reproduce._other_year({"population": frame["population"]}) is None
    named = {"exposure": "population"}
    assert reproduce.features({**frame, "poverty": [1, 2]}, named, ()) == ["poverty"]
