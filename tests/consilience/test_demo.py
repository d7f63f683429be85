"""The demonstration: what it claims is what it computed, and what it computed is right."""

import html
import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience import demo
from consilience.cli import main
from consilience.demo_words import (
    FILES,
    FILES_HELD,
    HELD,
    OF_SYSTEMS,
    SIMULATIONS,
    TOO_HIGH,
    Others,
    against_the_votes,
    by_priors,
    of_ties,
    same_grades,
    trusted_and_wrong,
    truth_among,
    who_is_first,
    whom_to_look_at,
)
from consilience.drawing import WIDTH
from consilience.notes import Level
from consilience.pages import Code, More


@pytest.fixture(scope="module")
def studies():
    """Return every study by the name of its function."""
    return {study.__name__: study() for study in demo.STUDIES}


def test_the_page_needs_nothing_but_itself(studies, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "STUDIES", tuple(lambda study=study: study for study in studies.values()))
    assert main(["demo", "-o", str(tmp_path / "demo.html")]) == 0
    page, shown = (tmp_path / "demo.html").read_text(), capsys.readouterr().out
    for study in studies.values():
        assert study.section.title in shown
        assert study.section.title in page
        assert study.words in " ".join(shown.split())
        assert sum(str(block).startswith("What to do with this: ") for block in study.section.blocks) == 1
    assert page.count("<svg") == 15
    page = html.unescape(page).replace("\N{NO-BREAK SPACE}", " ")
    every = [study.finding for study in studies.values() if study.finding]
    found = [finding.partition(":")[0] for finding in every]
    assert found == ["Anaesthetists", "Dermatologists", "Leaderboard", "Reliability"]
    assert re.findall(r"<li>([A-Z]\w+: .*?)</li>", page)[:4] == every
    # Each study is on the first screen, in a finding or a number.
    told = {re.split(":| in ", name)[0] for study in studies.values() for name in study.number}
    assert told | set(found) == {study.section.title.partition(":")[0] for study in studies.values()}
    assert page.count(f'<p class="verdict">{studies["leaderboard"].verdict}</p>') == 1
    assert not re.search(r"\bnan\b", shown + re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))
    assert not re.search(r"(src|href)=[\"'](?!#|data:)", page)


def test_what_was_run_names_every_study_with_its_seed(studies):
    (table, said, _, again) = demo._what_was_run(list(studies.values())).blocks
    assert table.frame["study"].tolist() == [study.section.title for study in studies.values()]
    assert set(table.frame["seed of the fit"]) == {0}
    assert table.frame["draws"].min() > 0
    assert f"consilience {cs.__version__}" in said
    assert again.text == "consilience demo -o demo.html"


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize(
    ("name", "column", "found"),
    [
        ("anaesthetists", "certainty", lambda own: np.sort(own["fit"].labels()["certainty"])[[*range(8), 12]]),
        ("dermatologists", "here, weights of their program",
         lambda own: [demo._scores_by_case(own["fit"], own["systems"])[one] for one in demo._PRINTED_SCORES]),
        ("leaderboard", "default prior (95 %)", lambda own: own["found"].comparisons["default prior"].table["value"]),
        ("toy", "γ = 10", lambda own: cs.certainty(own["fit"], exact=True).items),
        ("ratings", "items",
         lambda own: np.histogram(cs.certainty(own["fit"], exact=True).items, (0, 0.75, 0.95, 1))[0][::-1]),
        ("people", "mean of draws",
         lambda own: [value := own["fit"].num_entities().value, 600 - value]),
    ],
)  # fmt: skip
def test_the_code_of_each_study_runs_as_it_is_and_gives_its_numbers(studies, name, column, found, capsys):
    (code,) = (block.text for block in studies[name].section.blocks if isinstance(block, Code))
    own = {}
    exec(code, own)  # noqa: S102
    assert capsys.readouterr().out
    np.testing.assert_allclose(found(own), studies[name].table.frame[column])


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_two_files_are_linked(studies):
    table, words = studies["people"].table.frame, studies["people"].words
    assert words.startswith("Two files, drawn from the model that is fitted, describe 455 people in 600 records")
    assert table["truth"].tolist() == [455, 145]
    # The page says in its own words what the fit warns of, and the fit warns of nothing else.
    (cut,) = (block for block in studies["people"].section.blocks if "cut at their weakest links" in str(block))
    fit = cs.fit("block-linkage", demo.simulated_people(7), restriction="across")
    (warned,) = (note.words() for note in fit.findings() if note.level > Level.note)
    numbers = [re.findall(r"\d+(?:\.\d)?", one) for one in (cut, warned)]
    assert numbers[0] == [one for one in numbers[1] if one != "75"] == ["7", "21", "20", "1.0"]
    assert table["mean of draws"].sum() == pytest.approx(600)
    assert words.endswith("true number 20 times. With so few simulations the true share may be 0.84 to 1.00.")
    low, high = map(round, table.loc[0, ["95 % from", "to"]])
    name = "People in two files (95 % interval); in truth there are 455"
    assert studies["people"].number == {name: f"{low} to {high}"}
    assert (table["95 % from"] <= table["truth"]).all()
    assert (table["truth"] <= table["to"]).all()


def test_the_least_certain_patients_come_first(studies):
    table = studies["anaesthetists"].table.frame
    fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"))
    certainty = cs.certainty(fit)
    assert table["certainty"].is_monotonic_increasing
    assert table["certainty"][0] == pytest.approx(certainty.items.min())
    study, sure = studies["anaesthetists"], (certainty.items >= 0.9).sum()
    fits = [cs.fit("dawid-skene", fit.data, dependence=value) for value in (0, 0.2, 0.5, 0.63)]
    others = [(cs.certainty(one).items >= 0.9).sum() for one in fits]
    assert all((one.labels()["label"] == fit.labels()["label"]).all() for one in fits)
    words, tried = " ".join(block for block in study.section.blocks if isinstance(block, str)), study.section.blocks[4]
    assert words.count("outside the range tried. The grades are the same throughout that range.") == 1
    named = ["0 (independent looks)", "0.2", "0.3, assumed", "0.5", "0.63 (the highest of nine public crowds)"]
    assert tried.frame["dependence"].tolist() == named
    assert tried.frame["sure grades"].tolist() == [*others[:2], sure, *others[2:]]
    assert others[0] > others[1] > sure > others[2] > others[3]
    every = [*others[1:], sure]  # of the range of public crowds
    name = "Anaesthetists: grades of 45 that are sure (certainty 0.9 or more), if graders make the same errors as "
    name += "often as nine public crowds do"
    assert "It is 0.3, not learned from these data but assumed: nine public crowds have 0.20 to 0.63. The" in words
    assert study.number == {name: f"{min(every)} to {max(every)}"}
    own, without = fit.labels(), cs.fit("dawid-skene", fit.data, method="em").labels()
    changed = own["item"][own["label"] != without["label"]]
    assert changed.tolist() == ["2", "12", "36", "38"]
    (more,) = (block for block in study.section.blocks if isinstance(block, More))
    assert more.title == "Without a prior, 4 patients would get a different grade"
    assert changed.tolist() == re.findall(r"(\d+) \(\d, not \d\)", more.blocks[0])
    assert "get a different grade, with a certainty of 0.97 or more: 2 (4, not 3), " in more.blocks[0]
    assert more.blocks[1].startswith("Confusion matrices lean")
    assert set(changed) <= set(table["patient"])
    assert 0.97 < without["certainty"][own["label"] != without["label"]].min() < 0.98
    said = f"Anaesthetists: if graders erred independently, {others[0]} of 45 grades would be sure. These data c"
    assert study.finding.startswith(said)
    assert "Only one grade differs from that of most votes: patient 38 (2; 4 of 7 say 3). The dependence says" in words
    assert study.finding.endswith(" before it sees data, 4 patients would get a different grade.")
    assert study.section.gist == (
        "6 of 45 patients should be looked at again, if graders make the same errors as often as assumed"
    )
    unsure = own["item"][certainty.items < 0.9]
    advice = study.section.blocks[-1]
    assert advice.startswith("What to do with this: have 6 patients looked at again: 3, 38, 7, 36, whose certainty is")
    assert set(unsure) == {"3", "38", "7", "36"}
    assert ", and 2, 12, whose grade differs without a prior. If the dependence may be as high as 0.63, look" in advice
    assert f"look again at the {45 - others[3]} who are below 0.9 there: 3, 38, " in advice
    # Every patient was graded seven times, three times by the first anaesthetist.
    assert {sum(map(int, re.findall(r"(\d+)×", votes))) for votes in table["votes"]} == {7}


def test_the_printed_cases_come_out_as_printed(studies):
    table = studies["dermatologists"].table.frame
    program, equation = (table[f"here, weights of their {one}"] for one in ("program", "equation 14"))
    # The paper's own figures are from 1,000 draws and rounded to two digits.
    np.testing.assert_allclose(program, table["printed in the paper"], atol=0.05)
    # Four standard errors of 10,000 draws.
    np.testing.assert_allclose(program, [0.538, 0.981, 0.399, 0.599, 0.393, 0.586], atol=0.02)
    np.testing.assert_allclose(equation, [0.648, 0.972, 0.123, 0.876, 0.745, 0.807], atol=0.02)
    printed, (_, _, ties, counts, *_) = table["printed in the paper"], studies["dermatologists"].section.blocks
    moved, *far = map(float, re.findall(r"(?:to|within) (0\.\d{3})", f"{ties} {counts}"))
    pairs = (program, equation), (equation, printed), (program, printed)
    assert counts.startswith("All lists of a case together count as 30 annotators (reliability=30), one of the values")
    assert counts.endswith("The reliability of the fourth study is another quantity: it is per annotation.")
    for value, (one, other) in zip((moved, *far), pairs, strict=True):
        assert value - 0.001 < (one - other).abs().max() <= value  # rounded up, and by no more than it takes
    assert studies["dermatologists"].section.gist.endswith(f"by up to {moved:.3f}")
    advice = studies["dermatologists"].section.blocks[-1]
    assert advice.endswith("Here they would not: in each of the 3 cases the same system is ahead under both.")
    named = "here, weights of their equation 14"
    other = table.assign(**{named: np.where(table["case"] == "357", 1 - table[named], table[named])})
    columns = ["here, weights of their program", named]
    assert who_is_first(other, columns) == "Here they would in 1 of 3 cases: 357."
    said = f"Dermatologists: how tied diagnoses are weighted moves a system's score by up to {moved:.3f}, "
    assert studies["dermatologists"].finding == f"{said}but changes the leading system in none of 3 cases."
    assert of_ties(f"{moved:.3f}", other, columns) == f"{said}and changes which system leads in 1 of 3 cases."


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_uncertain_truth_covers_the_true_scores_and_the_majority_vote_does_not(seed):
    simulated = demo.simulated_leaderboard(seed)
    comparison = simulated.comparisons["default prior"]
    knowing = comparison.systems.index(demo.KNOWING)
    true = np.array([simulated.true_scores[name] for name in comparison.systems])
    spread = comparison.truth_draws.std(axis=1)
    assert np.all(np.delete(np.abs(true - comparison.values) < 4 * spread, knowing))
    assert true[knowing] == 1 > comparison.values[knowing] + 4 * spread[knowing]
    claimed = np.abs(true - comparison.points) / spread
    assert claimed[comparison.systems.index("repeats the crowd, slips anywhere")] > 6


def test_the_default_prior_is_what_a_user_gets_who_sets_nothing(studies):
    simulated = demo.simulated_leaderboard(0)
    (first, *others) = simulated.comparisons
    assert [first, *others] == ["default prior", "flat prior"]
    own, shown = cs.fit("dirichlet", simulated.data), simulated.fits[first]
    alphas = (one.resolved.concentration("plausibility") for one in (own, shown))
    np.testing.assert_array_equal(*alphas)
    assert list(studies["leaderboard"].table.frame)[3] == "default prior (95 %)"


def test_the_words_about_the_leaderboard_follow_its_table(studies):
    study, simulated = studies["leaderboard"], demo.simulated_leaderboard(0)
    table, texts = study.table.frame, study.table.texts
    assert table["true accuracy"].tolist() == [simulated.true_scores[name] for name in table["system"]]
    for prior, comparison in simulated.comparisons.items():  # intervals are of the accuracy on these items
        for name, text in zip(table["system"], texts[f"{prior} (95 %)"], strict=True):
            place = comparison.systems.index(name)
            low, high = np.quantile(comparison.truth_draws[place], [0.025, 0.975])
            assert text == f"{comparison.values[place]:.2f} ({low:.2f} to {high:.2f})"
    figure = study.section.blocks[4].figure
    assert figure.get_figwidth() == WIDTH  # so that a phone shows the cross of the best claim
    drawn = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert drawn[0] == "default prior, with 95 % interval"
    assert drawn[1] == "flat prior, with 95 % interval"
    place = table["by majority vote"].idxmax()
    favourite, (default, flat) = table.loc[place], (texts[f"{prior} (95 %)"][place] for prior in simulated.fits)
    claimed, true = texts["by majority vote"][place], texts["true accuracy"][place]
    said = f"“{favourite['system']}” has an accuracy of {claimed}; its true accuracy is {true}."
    assert study.words.endswith(f"Scored against the majority vote, {said}")
    more, _ = (block.blocks[0] for block in study.section.blocks if isinstance(block, More))
    alpha = simulated.fits["default prior"].posterior.plausibility.unnamed
    assert f"Here the default prior adds {alpha:.2f} to each label, and the data were drawn with 0.4." in more
    assert "accuracy of 3 and 1 of the 3 systems that know only the crowd. Under both, “hesitates" in more
    value, low, high = re.findall(r"0\.\d\d", default)
    said = f"has an accuracy of {claimed}. The model says {value} ({low} to {high}, 95 %); the truth is {true}."
    assert study.verdict.endswith(said)
    told = cs.compare(simulated.fits["default prior"], {"it": demo._as_predictions(
        simulated.data, simulated.truth, "it")}, provenance="independent").of_these().table.iloc[0]  # fmt: skip
    knows = texts["default prior (95 %)"][table["system"].tolist().index(demo.KNOWING)]
    said = f"scores {knows[:4]} if it is taken to have learned from the crowd, and {told['value']:.2f} if not."
    assert study.finding.endswith(said)
    said = f"gives it {told['value']:.2f} ({told['lower']:.2f} to {told['upper']:.2f})."
    assert study.section.blocks[3].endswith(said)
    assert not any(name.startswith("P(best)") for name in table)
    ((name, number),) = study.number.items()
    assert (name, number) == (
        "Leaderboard: 95 % intervals of systems that know only the crowd, in 100 simulations, that contain the true "
        "accuracy", "284 of 300",
    )  # fmt: skip
    assert f"the model says {default}, or with a flat prior {flat}" in study.section.gist


@pytest.mark.slow
def test_how_often_intervals_of_the_leaderboard_hold_was_counted():
    held, too_high = dict.fromkeys(HELD, 0), {name: list[float]() for name in HELD}
    for seed in range(SIMULATIONS):
        found = demo.simulated_leaderboard(seed)
        for prior, comparison in found.comparisons.items():
            own = comparison.table[comparison.table["system"] != demo.KNOWING]
            true = own["system"].map(found.true_scores)
            assert len(own) == OF_SYSTEMS
            held[prior] += int(true.between(own["lower"], own["upper"]).sum())
            too_high[prior] += (own["value"] - true).tolist()
    assert held == HELD
    assert {prior: round(float(np.mean(values)), 3) for prior, values in too_high.items()} == pytest.approx(TOO_HIGH)


def test_the_default_prior_expects_as_much_agreement_as_there_is(studies):
    """Two annotators agree with probability (α + 1) / (α K + 1) by a prior that adds α to each of K labels."""
    simulated = demo.simulated_leaderboard(0)
    agreement = cs.agreement(simulated.data).value
    by_prior = {
        name: float((alpha + 1) / (4 * alpha + 1))
        for name, one in simulated.fits.items() for alpha in [one.resolved.concentration("plausibility")[0, 0]]
    }  # fmt: skip
    assert abs(agreement - by_prior["default prior"]) < 0.02
    assert by_prior["flat prior"] < agreement - 0.1
    assert TOO_HIGH["flat prior"] < -0.03 < TOO_HIGH["default prior"]
    finding = studies["leaderboard"].finding
    said = "With the default prior, 284 of 300 contained the true accuracy; with a flat prior, which expects more "
    assert f"{said}disagreement than there is, only 191. " in finding


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_how_often_intervals_of_people_hold_was_counted():
    held = 0
    for seed in range(FILES):
        records = demo.simulated_people(seed)
        (low, top), known = cs.fit("block-linkage", records, restriction="across").num_entities().interval, len(
            np.unique(records.entity)
        )  # fmt: skip
        held += low <= known <= top
    assert held == FILES_HELD


def test_the_toy_has_an_example_of_each_kind(studies):
    table = studies["toy"].table.frame
    certainty = table.filter(like="γ").to_numpy()
    assert np.all(certainty[0] > 0.97)
    assert np.all(certainty[1] < 0.5)
    assert np.all(np.diff(certainty[2]) > 0)
    assert certainty[2, 0] < 0.7 < 0.99 < certainty[2, -1]
    # At x the conditions have the plausibilities of normal densities around −2, 0 and 1.5, of one width.
    nearest = [("Benign 1", "Benign 2", "Cancer")[np.abs(x - np.array([-2, 0, 1.5])).argmin()] for x in table["x"]]
    assert table["truly on top"].tolist() == nearest
    assert (nearest[2], table["votes"][2]) == ("Benign 2", "1× Benign 1, 1× Benign 2, 3× Cancer")
    said = "not more right: in example (iii) most votes are for Cancer, which has a certainty of 0.999 at γ = 10, but "
    assert said + "Benign 2 is the most plausible." in studies["toy"].words
    said = "as 10 independent annotators, the model is 0.999 certain of that condition; if each counts as one, 0.775."
    assert said in studies["toy"].finding
    agree = table.assign(**{"truly on top": ["Cancer"] * 3}), "γ = 10"
    votes = np.array([[0, 0, 5], [1, 2, 2], [1, 1, 3]])
    assert trusted_and_wrong(demo.TOY_LABELS, votes, *agree).endswith("on how far you trust annotators.")
    # Half of five votes, and as much of each prior: how probably the first of three plausibilities is the largest.
    random = np.random.default_rng(0)
    for prior, value in ((0.1, certainty[0, 0]), (1, 0.845)):
        largest = random.dirichlet([2.5 + prior, prior, prior], 100_000).argmax(axis=1)
        assert (largest == 0).mean() == pytest.approx(value, abs=0.005)
    (more,) = (block.blocks[0] for block in studies["toy"].section.blocks if isinstance(block, More))
    assert "with 0.1 for each condition" in more
    assert "1 for each, the certainty of example (i) at γ = 0.5 is 0.845, not 0.978." in more


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ("abb", "Every grade is that of most votes."),
        ("bbb", "Only one grade differs from that of most votes: patient 1 (b; 3 of 4 say a)."),
        ("bab", "2 grades differ from that of most votes: patient 1 (b; 3 of 4 say a); patient 2 (a; 4 of 5 say b)."),
    ],
)
def test_grades_that_leave_the_majority_are_named(grades, said):
    votes = np.array([[3, 1], [1, 4], [2, 2]])  # ties leave nobody
    assert against_the_votes(["a", "b"], [1, 2, 3], votes, list(grades)) == said


@pytest.mark.parametrize(
    ("systems", "lower", "upper", "said"),
    [
        (
            "yx", [0.7, 0.5], [0.8, 0.6],
            "of 1 and 2 of the 2 systems that know only the crowd. Under both, “y” is first. One",
        ),
        (
            "xy", [0.6, 0.1], [0.8, 0.6],
            "of 1 and 0 of the 2 systems that know only the crowd. First are “y” and “x” in turn. ",
        ),
    ],
)
def test_what_another_prior_would_say_is_counted(systems, lower, upper, said):
    def comparison(systems, lower, upper):
        table = pandas.DataFrame({"system": list(systems), "lower": lower, "upper": upper})  # best first
        return SimpleNamespace(table=table)

    own, other = comparison("yx", [0.7, 0.6], [0.8, 0.9]), comparison(systems, lower, upper)
    found = {"default prior": own, "flat prior": other}
    words = by_priors(found, {"x": 0.55, "y": 0.75}, dict(zip(found, (0.382, 1.0), strict=True)), 0.4)
    assert said in words
    assert words.startswith("Here the default prior adds 0.38 to each label, and the data were drawn with 0.4. The fla")


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ([[1, 2, 3]] * 3, "The grades are the same throughout that range."),
        ([[1, 2, 3], [1, 2, 2], [1, 1, 3]], "2 of 3 grades change within that range."),
    ],
)
def test_whether_grades_depend_on_what_is_assumed_is_said(grades, said):
    assert same_grades(grades) == said


def test_grades_of_maximum_likelihood_that_are_others_are_named():
    changed = pandas.DataFrame({"item": ["2"], "label": ["b"], "other": ["a"], "sure": [0.7]})
    others = Others({0.5: np.array([0.6, 0.8, 0.95])}, "", changed)
    assert others.without_prior.endswith("gets a different grade, with a certainty of 0.70 or more: 2 (a, not b)")
    labels, sure = pandas.DataFrame({"item": ["1", "2", "3"]}), np.array([0.7, 0.95, 0.99])
    number, advice = whom_to_look_at(labels, sure, others)
    assert number == 2
    assert "2 patients looked at again: 1, whose certainty is below 0.9, and 2, whose grade differs" in advice
    assert "as high as 0.5, look again at the 2 who are below 0.9 there: 1, 2. The" in advice
    same = others._replace(changed=changed[:0])
    assert same.without_prior.endswith("the grades are the same")
    number, advice = whom_to_look_at(labels, sure, same)
    assert number == 1
    assert "without a prior" not in advice


@pytest.mark.parametrize(("interval", "said"), [((9, 12), "inside"), ((10, 12), "inside"), ((11, 12), "outside")])
def test_where_the_true_number_lies_is_said(interval, said):
    words = truth_among(10, SimpleNamespace(interval=interval))
    assert words.startswith(f"The true number lies {said} the interval. In 20 simul")


def test_the_certainty_of_ratings_is_how_often_they_are_right(studies):
    table = studies["ratings"].table.frame
    assert table["items"].sum() == 120
    assert "right side for a share of only 0.500 (0.321 to 0.679, 95 %)." in studies["ratings"].section.blocks[-1]
    assert studies["ratings"].number == {"Ratings: items whose 95 % interval contains the true mean": "113 of 120"}
    first, *_, last = table.itertuples(index=False)
    wrong = [round(row[1] * (1 - row[3])) for row in (first, last)]
    told = studies["ratings"].words
    assert f"for {wrong[0]} of the {first[1]} items whose side the model is at least 0.95 certain of, " in told
    assert told.endswith(f"for {wrong[1]} of the {last[1]} where it is less than 0.75 certain.")
    share = re.search(r"a share of 0\.942 \(([\d.]+) to ([\d.]+), 95 %", studies["ratings"].words).groups()
    np.testing.assert_allclose(np.array(share, float), [0.884, 0.971])  # Wilson's of 113 of 120, by hand
    assert (table["95 % from"] < table["mean rating on the right side"]).all()
    expected, right = table["mean certainty"], table["mean rating on the right side"]
    # The mean rating is not the posterior mean, but shrinking towards the centre of the prior changes few sides.
    assert np.all(np.abs(right - expected) < 4 * np.sqrt(expected * (1 - expected) / table["items"]))
