"""Intervals of systems by models that know no annotators allow for errors that an annotator repeats."""

import dataclasses

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation import comparison
from consilience.evaluation.comparison import TOO_NARROW
from consilience.evaluation.without_annotators import MOST_GROUPS, Repeated, _deviations, groups_of, without_each

CLASSES = list("abc")
SAID = "Intervals allow for errors that an annotator repeats on many items (jackknife over {} annotators)."
NAMES = ["Ann", "Bob", "Cho", "Dan"]


def crowd(items=12, per_item=3, names=NAMES, seed=0, bias=0.0, listed=2, classes=CLASSES, most=0):
    """Rankings by some of the annotators for each item, by worths, to which each annotator adds a bias per class."""
    random, number = np.random.default_rng(seed), len(classes)
    worth, own = random.normal(0, 1.5, (items, number)), random.normal(0, bias, (len(names), number))
    item, who, report, block, class_ = [], [], [], [], []
    for i in range(items):
        for a in random.choice(len(names), random.integers(per_item, max(per_item, most) + 1), replace=False):
            order = np.argsort(-(worth[i] + own[a] + random.gumbel(size=number)))[:listed]
            report += [len(item)] * listed
            block += range(listed)
            class_ += order.tolist()
            item.append(i)
            who.append(a)
    return cs.Rankings.from_codes(item, who, report, block, class_, annotators=names, classes=classes), worth


def tops(first, classes=CLASSES):
    return cs.Predictions.from_lists([[classes[k]] for k in first], classes=classes)


def labels_of(data, without=""):
    """First choices as annotations of the same items, maybe without those of one annotator."""
    rows = data.to_pandas().query("rank == 1 and annotator != @without")
    item, who = rows["item"].astype(int), [NAMES.index(name) for name in rows["annotator"]]
    label = [CLASSES.index(name) for name in rows["class"]]
    return cs.Annotations.from_codes(
        item.to_numpy(), who, label, items=data.items, annotators=NAMES, labels=CLASSES
    )  # fmt: skip


def rankings_of(data, without=""):
    rows = data.to_pandas().query("annotator != @without")
    return cs.read_rankings(rows, classes=CLASSES)


def found_by(monkeypatch, fit, systems, **how):
    """Compare, and return what was found without annotators too."""
    kept, real = [], comparison.repeated_errors
    monkeypatch.setattr(comparison, "repeated_errors", lambda *a, **k: kept.append(real(*a, **k)) or kept[-1])
    return cs.compare(fit, systems, **how), kept[0]


@pytest.mark.parametrize("model", ["prirn", "irn", "dirichlet"])
def test_deviations_are_those_of_fits_without_each_annotator(monkeypatch, model):
    data, worth = crowd()
    chosen = labels_of if model == "dirichlet" else rankings_of
    systems = {"best": tops(worth.argmax(axis=1)), "one": tops(np.zeros(12, int))}
    own = {"alpha": 1.0} if model == "dirichlet" else {}  # which is learned from all data
    fit = cs.fit(model, chosen(data), **own)
    _, found = found_by(monkeypatch, fit, systems, provenance="annotations")
    size = np.bincount(data.report_annotator)
    assert len(set(size)) > 1  # or weights could be left out
    for place, system in enumerate(systems.values()):
        whole = cs.evaluate(fit, system).value
        left = np.array([cs.evaluate(cs.fit(model, chosen(data, name), **own), system).value for name in NAMES])
        h = size.sum() / size
        pseudo = h * whole - (h - 1) * left
        middle = 4 * whole - ((1 - 1 / h) * left).sum()
        variance = ((pseudo - middle) ** 2 / (h - 1)).sum() / 4
        assert (found.deviations[""][place] ** 2).sum() == pytest.approx(variance, rel=1e-5)


def test_of_equal_groups_it_is_the_usual_jackknife():
    found = np.random.default_rng(0).normal(size=(2, 5))
    data, _ = crowd(items=10, per_item=5, names=[*NAMES, "Eve"])
    own = groups_of(data, 0)
    deviation = _deviations(np.array([0.1, 0.2]), found, own, 1.0)
    centred = found - found.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(deviation @ deviation.T, 4 / 5 * centred @ centred.T, atol=1e-12)
    assert own.freedom == pytest.approx(4)


def test_plackett_luce_agrees_with_refits_within_the_monte_carlo_error(monkeypatch):
    data, worth = crowd(items=40, per_item=3, bias=1.0)
    system = tops(worth.argmax(axis=1))
    how = {"seed": 1, "draws": 500, "warmup": 200}
    fit = cs.fit("plackett-luce", data, **how)
    _, found = found_by(monkeypatch, fit, {"best": system}, provenance="annotations")
    scores = [cs.evaluate(fit, system)]
    scores += [cs.evaluate(cs.fit("plackett-luce", rankings_of(data, name), **how), system) for name in NAMES]
    value = np.array([one.value for one in scores])
    wanted = _deviations(value[:1], value[None, 1:], found.groups, 1.0)[0]
    # 200 draws of each unit, of which half count; items are independent.
    error = np.sqrt(0.25 / 100 / 40 + max(one.mcse for one in scores) ** 2) * np.sqrt(3 / 4 * 2)
    assert np.abs(found.deviations[""][0] - wanted).max() < 5 * error
    assert np.abs(wanted).max() > error  # or anything would do


def test_an_item_that_has_no_other_reports_keeps_its_score():
    data = cs.Rankings.from_codes(
        [0, 0, 1, 1], [0, 1, 0, 2], [0, 1, 2], [0, 0, 0], [0, 1, 2], annotators=NAMES[:3], classes=CLASSES
    )  # the last report ranks nothing
    stacked, stack = without_each(data, groups_of(cs.Rankings.from_codes(
        [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 0, 0], [0, 0, 0], annotators=NAMES[:3], classes=CLASSES
    ), 0)._replace(of_report=np.array([0, 1, 0, 2])))  # fmt: skip
    assert stack.item.tolist() == [0, 1, 0, 0]
    assert stack.group.tolist() == [0, 1]
    assert stack.shared == pytest.approx(2 / 3)
    assert stacked.report_annotator.tolist() == [0, 1, 0, 2, 1, 0]
    assert [stack.units(group, stack.group).tolist() for group in range(3)] == [[2, 1], [3, 1], [0, 1]]


def test_groups_are_exchanged_within_items_alone():
    data, _ = crowd(items=30)
    _, stack = without_each(data, groups_of(data, 0))
    item, exchanged = stack.item[30:], stack.exchanged(np.random.default_rng(0))
    assert (exchanged != stack.group).any()
    for one in range(30):
        assert sorted(exchanged[item == one]) == sorted(stack.group[item == one])


def test_many_annotators_are_put_into_balanced_groups():
    names = [f"annotator {code}" for code in range(37)]
    data, _ = crowd(items=200, per_item=3, names=names)
    groups = groups_of(data, 0)
    assert len(groups.size) == MOST_GROUPS
    assert groups.num_annotators == 37
    assert groups.size.max() - groups.size.min() <= np.bincount(data.report_annotator).max()
    assert len(set(zip(np.asarray(data.report_annotator).tolist(), groups.of_report.tolist(), strict=True))) == 37


def test_who_shares_a_source_is_one_annotator():
    data = labels_of(crowd(items=30)[0])
    assert len(groups_of(data, 0).size) == 4
    assert len(groups_of(data.grouped({"Ann": "L", "Bob": "L"}), 0).size) == 3
    assert groups_of(data.grouped({"Ann": "L", "Bob": "L", "Cho": "L"}), 0) is None


def test_positions_in_lists_are_no_names():
    nested = [[[["a"], ["b"]], [["b"]], [["a"]], [["c"]]][: 3 + item % 2] for item in range(8)]
    assert groups_of(cs.Rankings.from_nested(nested), 0) is None
    named = [dict(zip(NAMES, case, strict=False)) for case in nested]
    assert len(groups_of(cs.Rankings.from_nested(named), 0).size) == 4
    # Of as many in every list the places may be people.
    assert len(groups_of(cs.Rankings.from_nested([case[:3] for case in nested]), 0).size) == 3


@pytest.mark.parametrize("names", [NAMES[:2], None])
def test_intervals_are_said_to_be_too_narrow_where_annotators_are_few_or_not_known(names):
    votes = np.random.default_rng(0).multinomial(4, [0.5, 0.3, 0.2], 30)
    data = cs.Annotations.from_counts(votes, labels=CLASSES)
    if names:
        data = crowd(items=30, per_item=2, names=names)[0]
    system = {"one": tops(np.zeros(30, int))}
    fit = cs.fit("prirn" if names else "dirichlet", data)
    told = cs.compare(fit, system, provenance="independent").notes
    assert TOO_NARROW in told
    assert not any("jackknife" in note for note in told)
    assert cs.compare(fit, system, provenance="annotations").notes == ()


def test_annotators_who_repeat_errors_make_intervals_wider_and_differences_stay_paired(monkeypatch):
    names = [f"annotator {code}" for code in range(6)]
    data, worth = crowd(items=300, per_item=4, names=names, bias=1.5)
    same = tops(worth.argmax(axis=1))
    fit, systems = cs.fit("prirn", data, reliability=20), {"one": same, "two": same}
    ranked, found = found_by(monkeypatch, fit, systems, provenance="independent")
    assert ranked.notes == (SAID.format(6),)
    monkeypatch.setattr(comparison, "repeated_errors", lambda *a, **k: None)
    before = cs.compare(fit, systems, provenance="independent")
    width = [one.table["upper"][0] - one.table["lower"][0] for one in (before, ranked)]
    assert width[1] > 1.3 * width[0]
    ends = [one.pairs[["lower", "upper"]] for one in (before, ranked)]
    np.testing.assert_allclose(*ends, atol=1e-9)
    assert 0 < found.own_share < 0.9


def test_draws_are_normal_given_a_variance_that_few_groups_tell():
    data, _ = crowd(items=10, per_item=5, names=[*NAMES, "Eve"])
    found = Repeated(groups_of(data, 0), {"": np.array([[0.3, -0.3, 0.0, 0.1, -0.1]])})
    drawn = found.draws("", 0, 400_000)[0] / np.sqrt(0.2)
    from scipy import stats

    for level in (0.9, 0.975, 0.995):
        error = np.sqrt(level * (1 - level) / 4e5)
        assert np.mean(drawn < stats.t.ppf(level, 4)) == pytest.approx(level, abs=5 * error)
    less = dataclasses.replace(found, own_share=1.0).draws("", 0, 1000)
    assert 0.2 < np.mean(less == 0) < 0.9  # all of it may be other noise


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_a_sampled_fit_with_names_is_not_said_to_be_too_narrow():
    data, worth = crowd(items=20)
    fit = cs.fit("plackett-luce", data, draws=50, warmup=50)
    told = cs.compare(fit, {"best": tops(worth.argmax(axis=1))}, provenance="independent").notes
    assert told == (SAID.format(4),)


@pytest.mark.slow
@pytest.mark.parametrize(("bias", "wider"), [(0.0, (1.0, 1.3)), (1.0, (1.15, 1.5))])
def test_intervals_hold_the_accuracy_whether_annotators_repeat_errors_or_not(monkeypatch, bias, wider):
    """100 items of 5 classes, 3 to 5 of 6 annotators for each; both systems looked, and are right on 0.84 and 0.76.

    Figures of more data sets are in the guide of plausibilities.
    """
    names, classes, held, width = [f"annotator {code}" for code in range(6)], list("abcde"), [], []
    real = comparison.repeated_errors
    for seed in range(5000, 5060):
        data, worth = crowd(100, 3, names, seed, bias, listed=3, classes=classes, most=5)
        random, truth = np.random.default_rng([seed, 1]), worth.argmax(axis=1)
        systems = {
            name: tops(np.where(random.random(100) < knows, truth, random.integers(0, 5, 100)), classes)
            for name, knows in {"one": 0.8, "two": 0.7}.items()
        }
        fit = cs.fit("prirn", data, reliability=20)
        for allowed in (lambda *a, **k: None, real):
            monkeypatch.setattr(comparison, "repeated_errors", allowed)
            ranked = cs.compare(fit, systems, provenance="independent")
            row, pair = ranked.table.set_index("system").loc["one"], ranked.pairs.iloc[0]
            width.append(row["upper"] - row["lower"])
        lead = 0.08 if pair["a"] == "one" else -0.08
        held.append((row["lower"] <= 0.84 <= row["upper"], pair["lower"] <= lead <= pair["upper"]))
    assert np.min(np.mean(held, axis=0)) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)
    before, after = np.reshape(width, (-1, 2)).mean(axis=0)
    assert wider[0] < after / before < wider[1]


@pytest.mark.parametrize("named", [True, False])
def test_a_page_says_that_intervals_are_too_narrow_where_no_annotators_can_be_left_out(named, tmp_path):
    data, worth = crowd(items=30, bias=1.0)
    if not named:
        lists = [[["a"]], [["b"]], [["a"], ["c"]]]
        data = cs.Rankings.from_nested([lists[: 2 + item % 2] for item in range(30)], classes=CLASSES)
    systems = {"one": tops(worth.argmax(axis=1)), "two": tops(np.zeros(30, int))}
    cs.report(cs.fit("prirn", data), systems, path=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert ("probably too narrow" in page) == (not named)
    assert (SAID.format(4) in page.replace("\N{NO-BREAK SPACE}", " ")) == named
