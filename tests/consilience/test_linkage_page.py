"""The page of linked records: its tiles, findings and next steps say what was computed."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy import special, stats

import consilience as cs
from consilience.linkage_figures import mean_number
from consilience.models import block_linkage
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.weights import learned
from consilience.models.truth.partitions import pairs_together
from consilience.notes import IN_DETAILS
from consilience.pages.agreement_by_chance import (
    Weighed,
    _in_doubt_by_field,
    _near,
    in_detail,
    only_unsure,
    surer_links,
    surer_records,
    weighed,
)
from consilience.pages.dates_in_parts import lines_that_split, split_dates
from consilience.pages.linkage import (
    _by_threshold,
    _least_certain,
    _seen_of_draws,
    _shares_of_draws,
    _thresholds,
    expected_words,
    linkage_page,
)
from consilience.pages.linkage_first import links_section, written_files
from consilience.pages.linkage_next import next_steps
from consilience.pages.links_within import across_files, between_and_within, in_doubt, links_and_pairs, rarely_within
from consilience.pages.record_pairs import (
    _distinct,
    _signed,
    doubtful_records,
    fields_section,
    middle_link,
    most_in_doubt,
    near_cut,
    review_list,
)
from consilience.pages.run import _diagnosis, findings
from consilience.pages.typing_errors import typing_errors
from consilience.printing import percent, percents
from consilience.rounding import probability

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


def linked(num_files=2, **settings):
    """Link simulated records, of one file or two."""
    records = cs.simulate_records(200, num_files=num_files, seed=5).replace(entity=None)
    return cs.fit("block-linkage", records, draws=50, **settings)


@pytest.fixture(scope="module")
def fit():
    return linked()


def page_of(fit):
    return linkage_page(fit, {}, metric=None, risk=None, singletons=True, provenance=None, text=None)


def in_full(part):
    """Return the texts of a section, with those that open on a click."""
    blocks = [inner for block in part.blocks for inner in getattr(block, "blocks", [block])]
    return " ".join(block for block in blocks if isinstance(block, str))


def test_the_tile_of_entities_is_an_interval_and_says_what_is_written(fit):
    count = cs.num_entities(fit)
    low, high = count.interval
    name, value = next(iter(page_of(fit).numbers.items()))
    written = len(np.unique(fit.truth.estimate()))
    assert (value, written) == (f"{written}", count.point)
    assert name == f"entities in the result ({low:.0f} to {high:.0f}, 95 %)"


@pytest.mark.parametrize(
    ("num_files", "settings", "told"),
    [(2, {}, True), (2, {"restriction": "across"}, False), (2, {"restriction": "within"}, False), (1, {}, False)],
)
def test_links_within_a_file_are_counted_where_both_may_be(num_files, settings, told):
    one = linked(num_files, **settings)
    entity, source = fit_codes(one)
    first, second = np.triu_indices(len(entity), 1)
    together = entity[first] == entity[second]
    within = int((together & (source[first] == source[second])).sum())
    pairs = [int((source[first] != source[second]).sum()), int((source[first] == source[second]).sum())]
    said = f"{together.sum() - within} of {pairs[0]:,} pairs of records in different files are linked, and "
    said += f"{within} of {pairs[1]:,} in the same file. "
    found = [text for text in page_of(one).findings if text.startswith(said)]
    assert len(found) == told
    actions = next_steps(one, weighed(one), typing_errors(one))
    offered = [action.command for action in actions if action.words.startswith("If no file contains the same entity")]
    assert len(offered) == told
    assert all(one.startswith("consilience link FILES --restriction across") for one in offered)
    assert len(page_of(one).findings) <= 4


def of_entities(entity, source, probability=0.7):
    """Return a fit by hand, with a pair of records linked where both are of one entity."""
    entity, source = np.asarray(entity), np.asarray(source)
    first, second = np.nonzero(np.triu(entity[:, None] == entity, 1))
    pairs = SimpleNamespace(first=first, second=second, of=lambda a, b: np.full(len(a), probability))
    data = SimpleNamespace(
        num_records=len(entity), num_sources=len(set(source)), source=source,
        records=[f"r{number}" for number in range(len(entity))],
    )  # fmt: skip
    settings = SimpleNamespace(as_dict=lambda: {"restriction": "none"})
    truth = SimpleNamespace(estimate=lambda: entity, pairs=lambda: pairs)
    return SimpleNamespace(data=data, truth=truth, resolved=SimpleNamespace(settings=settings))


@pytest.mark.parametrize(
    ("linked_within", "rare", "named"),
    [(0, True, ""), (1, True, ". This separates r0 and r1 (linked with probability 0.70)"),
     (2, False,
      ". This separates r0 and r1 (linked with probability 0.70) and r2 and r3 (linked with probability 0.70)"),
     (3, False, ". This removes the 3 links within a file")],
)  # fmt: skip
def test_rates_of_links_say_whether_those_within_a_file_are_rare(linked_within, rare, named):
    """Of 20 records in each of two files, 12 are in both: 12 of 400 pairs, and as many as given of 2 × 190."""
    entity = np.concatenate([np.arange(20), np.arange(20) + 8])
    for pair in range(linked_within):
        entity[2 * pair + 1] = entity[2 * pair]
    fit = of_entities(entity, np.repeat([0, 1], 20))
    assert links_and_pairs(fit) == ((12, 400), (linked_within, 380))
    assert rarely_within(fit) is rare
    (said,) = between_and_within(fit)
    assert said.startswith("12 of 400 pairs of records in different files are linked, and ")
    assert f" and {linked_within} of 380 in the same file. " in said
    (step,) = across_files(fit, "consilience link FILES")
    twice = "If no file contains the same entity (such as a person) twice"
    assert step.words == f"{twice}, link only between files{named}:"
    falls = linked_within == 1
    assert ("If pairs in the same file are linked at the highest rate that 1 of 380 allows (95 %)" in said) is falls
    moved = np.log(stats.gamma.ppf(0.95, 2) / 380) - np.log(13 / 780)
    after = special.expit(special.logit(0.7) + moved)
    assert said.endswith(f"that link falls from 0.70 to {after:.2f}." if falls else "equally likely.")


def test_the_terminal_and_the_page_have_one_share_of_correct_links(fit):
    (right, *ends), (found, *_) = _shares_of_draws(fit)
    words = expected_words(fit)
    assert words.startswith(f"{percent(right)} of the ")
    assert f"to be correct ({percents(*ends)}, 95 %), and to have found {percent(found)} of all links (" in words


def test_weights_can_be_computed_again(fit):
    words = in_full(fields_section(fit, weighed(fit)))
    field, m, u, weight = re.search(r"“(\w+)” equal of (\S+) / (\S+), which is (\S+)\.", words).groups()
    assert np.log(float(m) / float(u)) == pytest.approx(float(weight), abs=0.01)
    weights = fit.weights().set_index(["field", "outcome"])["weight"]
    assert float(weight) == pytest.approx(weights[field, "equal"], abs=0.005)


def test_records_in_doubt_are_a_finding_before_notes_on_the_model(fit):
    number = len(doubtful_records(fit))
    pairs = fit.truth.pairs()
    least = np.abs(pairs.probability - 0.5).argmin()
    one, other = (fit.data.records[codes[least]] for codes in (pairs.first, pairs.second))
    for known in (0, 1, 2):
        surer = np.isin(np.arange(200), doubtful_records(fit)[:known])
        then = f" With equal values weighed as above, {number - known} would remain." if known else ""
        begun = f"{number} of 200 records have a certainty below 0.99.{then}"
        said = f"{begun} The least certain pair is {one} and {other} ({near_cut(pairs.probability[least])})."
        (found,) = in_doubt(fit, surer)
        assert found == said
        assert (found == page_of(fit).findings[-1]) is (known == 0)
        gist = f"; {number - known} with equal values weighed as in Findings"
        assert (gist in review_list(fit, surer).gist) is (known > 0)


def fit_codes(fit):
    """Return the entity and the file of each record."""
    return np.asarray(fit.truth.estimate()), np.asarray(fit.data.source)


def test_intervals_of_links_among_those_looked_at_are_those_of_the_draws(fit):
    pairs, partitions = fit.truth.pairs(), fit.truth.counted().partitions
    clusters = partitions.clusters(slice(None))
    first, second = np.triu_indices(fit.data.num_records, 1)
    estimate = fit.truth.estimate()
    made, every, seen = [], [], []
    for own in clusters:
        together = own[first] == own[second]
        made.append((together & (estimate[first] == estimate[second])).sum())
        every.append(together.sum())
        seen.append((own[pairs.first] == own[pairs.second]).sum())
    shares = np.array(made) / seen, np.array(seen) / every
    assert partitions is not fit.truth
    found = [(share.mean(), *np.quantile(share, [0.025, 0.975])) for share in shares]
    np.testing.assert_allclose(_seen_of_draws(fit), found)


def test_a_share_and_its_interval_are_of_the_same_draws(fit):
    """Tiles, the finding and the table of thresholds: none has the interval of draws and the value of another run."""
    (mean, low, high), (of_all, *_) = _shares_of_draws(fit)
    tiles = {name.split(" (")[0]: value for name, value in page_of(fit).numbers.items()}
    made = len(pairs_together(fit.truth.estimate()))
    wrong = made * (1 - mean)
    wrong = f"{wrong:.1f}" if wrong >= 0.1 else "< 0.1"
    assert tiles[f"of {made} links expected to be wrong"] == wrong
    assert tiles["of all links expected to be found"] == percent(of_all)
    number = wrong.replace("< ", "fewer than ")
    page = page_of(fit)
    assert page.verdict == (
        f"Treat the {made} links as a draft: the model expects {number} of them to be wrong, but no known "
        "link confirms that. Decide the pairs in doubt before you use them."
    )
    assert any("review" in action.command for action in page.actions)
    pairs, cuts = fit.truth.pairs(), np.array([0.2, 0.5, 0.9])
    own = fit.truth.counted().partitions.clusters(slice(None))
    together = own[:, pairs.first] == own[:, pairs.second]
    right = [together[:, pairs.probability >= cut].mean(axis=1) for cut in cuts]
    found = _by_threshold(fit, cuts)
    np.testing.assert_allclose(found["precision"], [share.mean() for share in right])
    np.testing.assert_allclose(found["precision_lower"], [np.quantile(share, 0.025) for share in right])


@pytest.mark.parametrize(("value", "text"), [(-0.004, "0.00"), (0.0, "0.00"), (0.006, "+0.01"), (-1.234, "−1.23")])
def test_log_odds_of_nothing_have_no_sign(value, text):
    assert _signed(value) == text


def test_the_threshold_in_the_headline_is_the_even_one(fit):
    table = fit.thresholds().set_index("threshold")
    drawn = _by_threshold(fit, np.array([0.5]))
    share = percent(drawn["precision"][0])
    assert _thresholds(fit).gist == f"the model expects {share} of pairs above 0.5 to be correct"
    assert (table["precision"] + table["recall"]).idxmax() != 0.5  # else the test tells nothing


@pytest.mark.parametrize(("corrected", "said"), [(157.3, "about 0.7"), (157.98, "hardly any")])
def test_links_that_are_no_candidates_are_said_as_links(fit, corrected, said, monkeypatch):
    monkeypatch.setattr(block_linkage, "expected_clusters", lambda posterior: (158.0, corrected))
    monkeypatch.setattr(Linkage, "tells_hidden", lambda posterior: True)
    words = block_linkage._left_out_in_words(Linkage.of(fit.posterior), fit.data)
    assert words.endswith(f"the compared pairs; among the others {said} more links are expected")


def test_log_odds_begin_where_no_third_record_is(fit):
    """A cluster of s records weighs m s! μ_s: of three records, their five partitions."""
    how = [block for block in review_list(fit).blocks if isinstance(block, str)]
    assert any("the log odds start at those of two records neither of which belongs with a third" in one for one in how)
    begun = fit.explain(*fit.data.records[:2])["log_odds"].iloc[0]
    parameters, _ = learned(fit.posterior, fit.resolved)
    one, two, three = parameters.intensity * np.array([1, 2, 6]) * parameters.size_share[:3]
    np.testing.assert_allclose(begun, np.log(two * one / one**3))  # neither is with the third
    assert begun != pytest.approx(np.log((two * one + three) / (one**3 + 2 * two * one)), abs=1e-3)


def test_probabilities_of_the_review_list_are_not_rounded_to_certainty(fit):
    frame = next(block.frame for block in review_list(fit).blocks if hasattr(block, "frame"))
    assert not {"1.00", "0.00"} & set(frame["probability"])


@pytest.mark.parametrize(
    ("seen", "predicted", "said"),
    [
        ([47, 14, 0.1], [0.76, 0.23, 0.01],
         "23.1 % of them in one or more (predicted 24.0 %), 0.2 % in two or more (1.0 %). That is weak evidence: of 61 "
         "links only 0.6 were expected to differ in several fields"),
        ([700, 200, 100], [0.7, 0.2, 0.1],
         "30.0 % of them in one or more (predicted 30.0 %), 10.0 % in two or more (10.0 %). That is weak evidence: "
         "pairs that differ in several fields are seldom linked"),
    ],
)  # fmt: skip
def test_why_errors_are_taken_as_independent_says_what_was_counted(seen, predicted, said):
    assert block_linkage._no_cause(np.array([seen, predicted])).endswith(said)


def test_no_number_of_links_of_another_inference_stands_in_the_text(fit):
    """The estimate's own expectation of all links is none of the numbers of a page whose headline is of the draws."""
    sections = {part.title: part for part in page_of(fit).sections}
    shares = next(one for one in sections["Links made and missed"].blocks if hasattr(one, "frame"))
    assert shares.frame.columns.tolist() == ["what", "mean of draws", "95 % of draws"]
    (mean, *_), (of_all, *_) = _shares_of_draws(fit)
    assert shares.frame["mean of draws"].tolist()[::3] == [percent(mean), percent(of_all)]
    count = cs.num_entities(fit)
    value, (low, high) = mean_number(count), count.interval
    assert sections["Clusters"].gist == (
        f"{count.point:.0f} entities in the result, {low:.0f} to {high:.0f} in 95 % of draws"
    )
    assert value != f"{count.point:.0f}"
    assert not any(value in text for text in [*page_of(fit).numbers, *page_of(fit).findings])  # once, where explained
    assert f" posterior draws have {value} entities on average" in sections["Clusters"].blocks[0]
    pairs, estimate = fit.truth.pairs(), fit.truth.estimate()
    own = percent(pairs.probability[estimate[pairs.first] == estimate[pairs.second]].mean())
    made = len(pairs_together(estimate))
    right = pairs.probability[estimate[pairs.first] == estimate[pairs.second]].mean()
    drawn, stated = (f"{made * (1 - one):.1f}" for one in (mean, right))
    assert float(drawn) >= 0.1
    assert float(stated) >= 0.1
    told = f"The {drawn} wrong links of the first screen come from the draws"
    assert (told in page_of(fit).method) is (f" give {stated}." in page_of(fit).method) is (stated != drawn)
    assert "To quote, use the first and last share" in sections["Links made and missed"].blocks[0]
    assert own == percent(mean) or own not in sections["Clusters"].blocks[0]


def test_thresholds_above_which_the_same_pairs_are_share_a_row(fit):
    table = fit.thresholds()
    shown = next(one for one in _thresholds(fit).blocks if hasattr(one, "frame"))
    assert shown.frame["pairs"].is_unique
    assert len(shown.frame) == table["pairs"].nunique() < len(table)
    for row, text in zip(shown.frame.itertuples(), shown.texts["threshold"], strict=True):
        own = table["threshold"][table["pairs"] == row.pairs]
        assert text.split() == (f"{own.min():g}" if len(own) == 1 else f"{own.min():g} to {own.max():g}").split()
    assert all(len(texts) == len(shown.frame) for texts in shown.texts.values())


def test_log_odds_are_explained_once(fit):
    said = " ".join(block for part in page_of(fit).sections for block in part.blocks if isinstance(block, str))
    assert said.count("Log odds of 0 are a probability of 0.5") == 1
    assert [part.title for part in page_of(fit).sections[:2]] == ["Review list", "Match weights"]
    assert "Log odds of 0 are" in page_of(fit).sections[0].blocks[0]


def with_dates(restriction):
    """Link records of 40 people in two files, whose date of birth nobody shares and whose names are few."""
    random = np.random.default_rng(3)
    days = [f"19{40 + number}-01-{1 + number % 28:02d}" for number in range(40)]
    names = random.integers(0, 4, (40, 2))
    files = {}
    for file in ("a", "b"):
        own = names.copy()
        own[random.random(40) < 0.15, 0] += 4
        files[file] = pandas.DataFrame({"id": [f"{file}{row}" for row in range(40)], "first": own[:, 0].astype(str),
                                        "last": own[:, 1].astype(str), "born": days})  # fmt: skip
    types = {"first": "category", "last": "category", "born": "date"}
    return cs.link(files, fields=types, restriction=restriction, draws=50)


@pytest.mark.parametrize("restriction", ["none", "across"])
def test_agreement_by_chance_that_is_not_there_is_counted(restriction):
    one = with_dates(restriction)
    born = np.asarray(one.data.value)[list(one.data.fields).index("born")]
    source = np.asarray(one.data.source)
    first, second = np.triu_indices(80, 1)
    may = (source[first] != source[second]) if restriction == "across" else np.ones(len(first), bool)
    first, second = first[may], second[may]
    linked = one.truth.pairs().of(first, second)
    weights = one.weights().set_index(["field", "outcome"])
    expected = weights.loc[("born", "equal"), "u"] * (1 - linked).sum()
    found = (1 - linked)[born[first] == born[second]].sum()
    own = weighed(one)
    (chance,) = own.overstated
    assert (chance.field, chance.place, chance.values) == ("born", 2, 40)
    assert chance.share >= 1 / 40  # of 40 values, two are equal in no less
    np.testing.assert_allclose([chance.expected, chance.found], [expected, found], rtol=1e-4)
    (said,) = surer_links(one, own)
    estimate = np.asarray(one.truth.estimate())
    unsure = (estimate[first] == estimate[second]) & (linked < 0.99)
    same = born[first] == born[second]
    apart = same & (estimate[first] != estimate[second])
    assert (chance.equal, chance.linked) == (same.sum(), same.sum() - apart.sum())
    assert apart.sum() == 0
    begun = f"No two records that are apart share “born”, though the model expects {expected:,.0f} such pairs. It "
    assert said.startswith(f"{begun}therefore undervalues an equal “born”. ")
    most = stats.gamma.ppf(0.95, found + 1)
    made = estimate[first] == estimate[second]
    odds = special.logit(np.clip(linked, 1e-12, 1 - 1e-12)) + same * np.log(expected / most)
    rises = f"from {probability(linked[made & same].min(), 2)} to about "
    rises += probability(special.expit(odds[made & same].min()), 2)
    own_words = f" With {most:.0f} such pairs, the most that this count allows at 95 %, the least certain of the links "
    own_words += f"that share it would rise {rises}. "
    doubted = made & same & (linked < 0.99)
    more = special.expit(odds[doubted])
    if doubted.any():
        after = probability(more.min(), 2)
        how = "probably all right" if (1 - more).sum() < 0.5 else "more certain than stated"
        after = f"about {after} or more" if after.startswith("0") else after
        with_ = "a probability below 0.99. With so few equal by chance,"
        assert said.endswith(
            f" {doubted.sum()} have {with_} they are {how} ({after})." if doubted.sum() > 1
            else f" 1 has {with_} it is {how.replace('all ', '')} ({after})."
        )
    else:
        assert said.endswith(". The links that share it are more certain than stated.")
    few = own._replace(overstated=[chance._replace(equal=same.sum() + 2)])
    assert surer_links(one, few)[0].startswith("Only 2 pairs of records that are apart share “born”, though the model ")
    many = own._replace(overstated=[chance._replace(expected=chance.limit)])
    assert surer_links(one, many)[0].endswith(". The links that share it are more certain than stated.")
    risen = unsure & (special.expit(odds) >= 0.99)
    records = np.unique([first[risen], second[risen]])
    assert np.flatnonzero(surer_records(one, own)).tolist() == records.tolist()
    assert f"{said} Splitting the date (step 1) repairs this." in page_of(one).findings
    assert page_of(one).actions[0].words.startswith("Put year, month and day of “born”")
    (told,) = in_detail(one, own)
    assert f" pairs ({chance.share:.4f}) to share " in told
    assert f"{own_words}1 over its 40 values is 0.0250. " in told
    assert "The model assumes that every entity has one of the values in the files." in told
    (asked,) = (action for action in page_of(one).actions if "separate columns" in action.words)
    assert asked.words.startswith("Put year, month and day of “born” into separate columns and link on these, so that ")
    assert asked == page_of(one).actions[0]
    assert (asked.command, lines_that_split(one, own, {"born": "date"})) == ("", [])  # made of no files
    assert not split_dates(one, own, {"born": "category"})
    how, _, table, *_ = fields_section(one, own).blocks
    ends = table.frame.set_index(["field", "outcome"])[["95 % from", "to"]]
    assert ends.loc[("born", "equal")].isna().all()
    assert ends.loc[("first", "equal")].notna().all()
    assert "The line “equal” of a field that the model expects to be equal by chance far too often has none." in how


@pytest.mark.parametrize(
    ("chances", "told"),
    [
        ([0.5, 0.46, 0.71, 0.001], 3), ([0.5], 1), ([0.5, 0.995], None), ([0.01, 0.001], None),
        ([0.5] + [0.01] * 9, None),  # a part of the share is of pairs that are hardly links
    ],
)  # fmt: skip
def test_where_no_sure_link_differs_that_is_said(chances, told):
    """Pairs of the records 2 k and 2 k + 1, which differ in the one field; the last pair is a sure link with equals."""
    number = len(chances) + 1
    value = np.arange(2 * number)[None]
    value[0, -1] = value[0, -2]
    first = 2 * np.arange(number)
    pairs = SimpleNamespace(first=first, second=first + 1, probability=np.array([*chances, 0.999]))
    data = SimpleNamespace(value=value, fields=["born"], near=None)
    fit = SimpleNamespace(data=data, truth=SimpleNamespace(pairs=lambda: pairs))
    differing = pandas.DataFrame({"field": ["born"], "links": [0.037]})
    found = _in_doubt_by_field(fit, differing)
    assert found == ({} if told is None else {"born": told})
    own = Weighed(None, [], differing, found)
    assert ("No link of 0.99 or more differs in “born” (" in only_unsure(own)) is (told is not None)


@pytest.mark.parametrize(("chance", "text"), [(0.499, "0.499"), (0.4951, "0.495"), (0.46, "0.46"), (0.999, "> 0.99")])
def test_pairs_near_one_half_have_a_digit_more(chance, text):
    assert near_cut(chance) == text


def test_all_links_stand_on_the_page_with_where_they_are_written(fit, tmp_path):
    part = links_section(fit)
    (table,) = (block for block in part.blocks if hasattr(block, "frame"))
    estimate = np.asarray(fit.truth.estimate())
    assert len(table.frame) == len(pairs_together(estimate))
    names = list(fit.data.records)
    for row in table.frame.itertuples(index=False):
        assert estimate[names.index(row[0])] == estimate[names.index(row[1])]
    assert table.frame["probability"].is_monotonic_increasing
    assert "consilience table RUN entities" in part.blocks[0]
    for name in ("entities.csv", "pairs.csv"):
        (tmp_path / name).write_text("")
    one = dataclasses.replace(fit, folder=str(tmp_path))
    assert written_files(one) == [str(tmp_path / "entities.csv"), str(tmp_path / "pairs.csv")]
    assert f"is in {tmp_path}/entities.csv and {tmp_path}/pairs.csv: " in links_section(one).blocks[0]


def test_the_first_figure_counts_pairs_by_probability(fit):
    pairs, estimate = fit.truth.pairs(), np.asarray(fit.truth.estimate())
    told = estimate[pairs.first] == estimate[pairs.second]
    drawn = {tuple(bar.get_facecolor()): 0 for bar in page_of(fit).figure.patches}
    for bar in page_of(fit).figure.patches:
        drawn[tuple(bar.get_facecolor())] += bar.get_width()
    shown = pairs.probability >= 0.02
    left = f"pairs ({(~shown).sum():,} compared pairs below 0.02 not shown)"
    assert page_of(fit).figure.get_xlabel() == (left if (~shown).any() else "pairs")
    assert list(drawn.values()) == [(told & shown).sum(), (~told & shown).sum()]


def test_the_field_that_says_most_is_that_of_the_table(fit):
    weights = fit.weights()
    most = weights[weights["outcome"] == "equal"].sort_values("weight").iloc[-1]
    assert fields_section(fit, weighed(fit)).gist == (
        f"“{most['field']}” counts most where it is equal: {_signed(most['weight'])} for an average value"
    )


def test_pairs_that_come_again_are_shown_once():
    assert _distinct([(3, 1), (2, 0), (1, 3), (2, 0), (4, 5)]) == [(3, 1), (2, 0), (4, 5)]


@pytest.mark.parametrize(("near", "expected"), [(None, [False] * 3), ([[4, 6], [5, 6]], [True, False, True])])
def test_values_that_are_nearly_equal_do_not_differ(near, expected):
    """Codes of the second field begin at 4; the order of the two is of no account."""
    near = None if near is None else np.array(near)
    data = SimpleNamespace(near=near, first_value=np.array([0, 4, 8]), num_values=8)
    assert _near(data, 1, np.array([0, 0, 2]), np.array([2, 1, 1])).tolist() == expected


def test_what_fields_weigh_is_computed_once_for_a_page(fit, monkeypatch):
    asked = []
    table = type(fit).table
    monkeypatch.setattr(type(fit), "table", lambda self, name, *more: asked.append(name) or table(self, name, *more))
    page_of(fit)
    assert asked.count("weights") == 1


def test_bars_of_a_pair_add_up_to_its_probability(fit):
    """From the prior odds field by field: of two records that no third may belong with that is all there is."""
    section_ = review_list(fit)
    bars = [one for block in section_.blocks for one in getattr(block, "blocks", [block]) if hasattr(one, "rows")]
    pairs, names = fit.truth.pairs(), list(fit.data.records)
    degree = np.bincount(np.r_[pairs.first, pairs.second], minlength=fit.data.num_records)
    alone = 0
    for block in bars:
        *terms, total = block.rows
        added = [float(row.text.rpartition(", ")[2].replace("\N{MINUS SIGN}", "-")) for row in terms]
        assert sum(added) == pytest.approx(total.value, abs=0.006 * len(added))
        assert [row.start for row in terms] == [0.0, *(row.value for row in terms[:-1])]
        assert terms[0].label == "before comparing"
        one, other = re.match(r"(?:For comparison, a typical link: )?(\S+) and (\S+): log odds", block.caption).groups()
        one, other = (np.array([names.index(name)]) for name in (one, other))
        if degree[one[0]] == degree[other[0]] == 1:
            alone += 1
            assert pairs.of(one, other)[0] == pytest.approx(1 / (1 + np.exp(-total.value)), abs=1e-3)
            assert " alone; " not in block.caption
    assert alone
    first_two = {names[place] for place in most_in_doubt(fit)}
    assert set(bars[0].caption.partition(":")[0].split(" and ")) == first_two  # which the first screen names
    assert bars[-1].caption.startswith("For comparison, a typical link: ")
    one, other = np.divmod(pairs_together(fit.truth.estimate()), fit.data.num_records)
    sure = pairs.of(one, other)
    ((first, second),) = middle_link(fit)
    assert (sure >= pairs.of(np.array([first]), np.array([second]))[0]).sum() >= len(sure) / 2


def test_nothing_is_said_where_agreement_by_chance_is_as_expected(fit):
    own = weighed(fit)
    assert own.overstated == []
    assert (surer_links(fit, own), in_detail(fit, own)) == ([], [])
    assert not surer_records(fit, own).any()
    assert "by chance far too often has none" not in fields_section(fit, own).blocks[0]


def test_how_errors_were_taken_stands_in_the_details_alone(fit):
    notes = [note for note in fit.findings() if note.about == IN_DETAILS]
    assert any("errors in the fields of a record were taken as independent" in note.words() for note in notes)
    said = " ".join(findings(fit)).lower()
    assert not any(note.words().lower() in said for note in notes)
    assert all(note.words()[1:] in _diagnosis(fit) for note in notes)


def test_the_table_of_clusters_says_what_the_command_prints(fit):
    shown, every = _least_certain(fit)
    several = (np.unique(fit.truth.estimate(), return_counts=True)[1] > 1).sum()
    assert shown.caption.endswith(f": 10 of the {several} entities with several records.")
    assert every.endswith(f"has a row for each of the {len(fit.table('matching_sets'))} records.")
