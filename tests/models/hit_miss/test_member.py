"""Hit-miss through the public `fit`: answers, tables, and what it is told."""

import numpy as np
import pytest

import consilience as cs
from consilience.data import Records
from consilience.errors import UnsupportedRequest
from consilience.evaluation.partition_scores import num_entities
from consilience.inference.results import Result
from consilience.models.block_linkage.gibbs import truth as block_linkage_truth
from consilience.models.hit_miss import MODEL, gibbs, simulate
from consilience.models.hit_miss.gibbs import name_free
from consilience.models.hit_miss.priors import hyperpriors
from consilience.models.hit_miss.simulation import _draw_entities
from consilience.models.truth.partitions import DrawnPartitions
from tests.models.records import german_names

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning"),
]

FILES = {
    "a": {"id": ["a1", "a2", "a3"], "name": ["vogt", "born", "lang"], "year": ["1951", "1960", "1947"]},
    "b": {"id": ["b1", "b2"], "name": ["vogt", "noll"], "year": ["1951", "1972"]},
    "c": {"id": ["c1", "c2", "c3"], "name": ["vogt", "noll", "kern"], "year": ["1951", "1972", "1980"]},
}


@pytest.fixture(scope="module")
def fitted():
    records = cs.read_records(FILES)
    return cs.fit("hit-miss", records, restriction="across", draws=300, chains=2, warmup=100, progress=False)


def test_entities_by_file_are_those_counted_by_hand(fitted):
    table = MODEL.table("patterns").make(fitted.posterior, fitted.resolved, DrawnPartitions(np.array([
        [0, 1, 2, 0, 4, 0, 4, 7],  # abc, a, a, bc, c
        [0, 1, 2, 0, 4, 5, 4, 7],  # ab, a, a, bc, c, c
        [0, 1, 2, 3, 4, 0, 6, 7],  # ac, a, a, b, b, c, c
    ])))  # fmt: skip
    found = dict(zip(table["sources"], table["entities"], strict=True))
    assert found == pytest.approx({
        "a": 2, "b": 2 / 3, "a + b": 1 / 3, "c": 5 / 3, "a + c": 1 / 3, "b + c": 2 / 3, "a + b + c": 1 / 3,
    })  # fmt: skip
    apart = MODEL.table("patterns").make(fitted.posterior, fitted.resolved, DrawnPartitions(np.arange(8)[None]))
    assert len(apart["sources"]) == 7  # sets that no entity has are there too
    assert apart["entities"][list(apart["sources"]).index("a + b + c")] == 0
    drawn = fitted.patterns()
    assert drawn["entities"].sum() == pytest.approx(num_entities(fitted).value)
    assert (drawn["lower"] <= drawn["upper"]).all()


def test_a_restriction_is_kept_in_every_draw(fitted):
    source, cluster = np.asarray(fitted.data.source), fitted.truth.clusters()
    same = (source[:, None] == source) & ~np.eye(len(source), dtype=bool)
    assert not ((cluster[:, :, None] == cluster[:, None]) & same).any()


def test_the_summary_has_no_names_of_clusters(fitted):
    quantities = [str(one) for one in fitted.summary()["quantity"]]
    assert "num_entities" in quantities
    assert any(one.startswith("together") for one in quantities)
    assert not any(one.startswith("cluster") for one in quantities)
    found = name_free(fitted.samples(), fitted.resolved)
    np.testing.assert_array_equal(found["num_entities"].ravel(), fitted.truth.num_clusters())


def test_the_most_doubtful_pairs_are_watched(monkeypatch):
    """Together are the last two always, the first two in half of the draws, and the third and fourth in one of four."""
    monkeypatch.setattr(gibbs, "_MOST_PAIRS", 1)
    draws = np.array([[0, 0, 2, 2, 4, 4], [0, 0, 2, 3, 4, 4], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 4]])
    assert [pair.tolist() for pair in gibbs._doubtful(draws)] == [[0], [1]]


def test_a_saved_fit_comes_back(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run")
    assert loaded.truth.clusters().tobytes() == fitted.truth.clusters().tobytes()
    for name in MODEL.table_names:
        assert loaded.table(name).equals(fitted.table(name)), name


def test_a_report_can_be_made(fitted, tmp_path):
    cs.report(fitted, path=tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Clusters" in text
    assert "Between files" in text


def test_a_run_that_stops_goes_on_to_the_same_bits(fitted, tmp_path):
    settings = {"restriction": "across", "draws": 300, "chains": 2, "warmup": 100, "progress": False}
    part = cs.fit("hit-miss", fitted.data, checkpoint=tmp_path / "kept", time_limit=0.0, **settings)
    assert part.result is Result.interrupted
    whole = cs.fit("hit-miss", fitted.data, checkpoint=tmp_path / "kept", resume=True, **settings)
    assert whole.result is not Result.interrupted
    assert whole.truth.clusters().tobytes() == fitted.truth.clusters().tobytes()


def test_what_the_prior_expects_is_said(fitted):
    assert any("expects 5 entities of 8 records" in note.text for note in fitted.findings())
    other = cs.fit("hit-miss", fitted.data, prior="entities", draws=20, chains=1, warmup=10, progress=False)
    assert not any("the prior of the partition" in note.text for note in other.findings())


def simulated(**changed):
    settings = {"num_records": 300, "num_values": (60, 40, 30, 12), "size_share": (0.6, 0.3, 0.1), "seed": 1}
    return cs.simulate_records(**settings | changed)


def test_the_interval_says_what_it_rests_on():
    """As that of block-linkage does: what was linked among, how many links are expected outside, whether it holds."""
    fitted = cs.fit("hit-miss", simulated(), prior="entities", draws=100, chains=2, warmup=100, progress=False)
    outside, found = fitted.truth.outside, fitted.truth.components
    assert outside.number > found.cut[-1] > 0
    assert outside.share == fitted.truth.found_share < 1
    basis = f"pairs with log odds above −4 in groups of at most 6, {outside.number:,.1f} links expected outside"
    assert basis in repr(fitted.num_entities())
    notes = [note.words() for note in fitted.findings()]
    assert any(note.startswith("the interval of the number of entities holds if the model does;") for note in notes)
    assert any(f"expects {outside.number:,.1f} links among the pairs that could not" in note for note in notes)
    assert any("were cut at their weakest links" in note for note in notes)
    warned = [one for one in fitted.diagnostics() if "could not be linked" in one]
    assert bool(warned) == (outside.number > 0.1 * fitted.truth.num_clusters().std())
    assert all("link by block-linkage with method='gibbs'" in one for one in warned)
    loss = fitted.table("loss").set_index("quantity")["value"]
    assert loss["links_outside"] == outside.number
    assert loss["links_cut"] == found.cut[-1]
    assert 0 <= loss["disagreement"] < 0.2


def test_a_model_that_does_not_hold_is_said():
    """Every duplicate has exactly one error, which independent errors would not have."""
    settings = {"prior": "entities", "draws": 60, "chains": 1, "warmup": 60, "progress": False}
    fitted = cs.fit("hit-miss", simulated(errors="one"), **settings)
    (warned,) = (one for one in fitted.diagnostics() if one.startswith("the model does not hold"))
    assert "try block-linkage with likelihood='error-classes'" in warned


def test_what_is_told_of_a_fit_is_computed_once(monkeypatch):
    calls = []
    for name in ("links_outside", "misfit"):
        right = getattr(block_linkage_truth, name)
        patched = lambda *given, right=right, name=name, **more: calls.append(name) or right(*given, **more)  # noqa: E731
        monkeypatch.setattr(block_linkage_truth, name, patched)
    fitted = cs.fit("hit-miss", simulated(num_records=60), draws=20, chains=1, warmup=10, progress=False)
    for _ in range(2):
        fitted.diagnostics()
        fitted.describe()
        fitted.table("loss")
        fitted.num_entities()
    assert sorted(calls) == ["links_outside", "misfit"]


def test_a_run_that_ends_before_its_first_draw_says_nothing_of_it(tmp_path):
    fitted = cs.fit("hit-miss", simulated(num_records=60), time_limit=0.0, checkpoint=tmp_path / "run", progress=False)
    assert fitted.result is Result.interrupted
    assert [note for note in fitted.findings() if "interval" in note.text] == []


@pytest.mark.parametrize("prior", ["labels", "partitions", "entities"])
def test_records_are_drawn_from_the_prior(prior):
    records, values = simulate(3, num_records=40, num_values=(30, 20), missing=0.1, num_sources=2, prior=prior)
    assert records.value.shape == (2, 40)
    assert 0 < (records.value < 0).mean() < 0.3
    assert np.bincount(values["cluster"]).max() <= 6
    assert (values["cluster"] == values["cluster"][values["cluster"]]).all()
    np.testing.assert_allclose([values["value_share"][:30].sum(), values["value_share"][30:].sum()], 1)
    same, _ = simulate(3, num_records=40, num_values=(30, 20), values=values, prior=prior)
    np.testing.assert_array_equal(same.entity, records.entity)
    with pytest.raises(UnsupportedRequest, match="cannot be drawn"):
        simulate(3, restriction="across")


def test_partitions_from_the_prior_are_uniform():
    """Of four records there are 15 partitions."""
    drawn = [
        tuple(simulate(seed, num_records=4, num_values=(2,), prior="partitions")[1]["cluster"]) for seed in range(450)
    ]
    number = np.array([drawn.count(one) for one in set(drawn)])
    assert len(number) == 15
    assert ((number - 30) ** 2 / 30).sum() < 45  # the chi-square of 14 degrees of freedom is that large once in 24,000


def test_partitions_and_sizes_from_the_prior_go_together():
    """Given two records, with m ~ Exponential(1/2): how probable one entity is, and what m and μ are on average."""
    two = Records.empty(num_records=2, num_fields=1)
    own = hyperpriors(MODEL.resolve(two, None, {"prior": "entities", "largest": 3}))
    assert own.intensity.tolist() == [1, 0.5]
    drawn = [_draw_entities(np.random.default_rng(seed), 2, own) for seed in range(3000)]
    together = np.array([one["cluster"][1] == 0 for one in drawn])
    first, second, _ = own.size_share
    total = own.size_share.sum()
    # Of one entity E[m 2! μ₂ exp(-m)], of two E[m² μ₁² exp(-m)].
    weights = np.array([2 * second / total / 1.5**2, 2 / 1.5**3 * first * (first + 1) / (total * (total + 1))])
    probability = weights[0] / weights.sum()
    assert abs(together.mean() - probability) < 5 * np.sqrt(probability * (1 - probability) / 3000)
    intensity = np.array([one["intensity"] for one in drawn])
    share = np.array([one["size_share"] for one in drawn])
    for chosen, number, added in ((together, 1, [0, 1, 0]), (~together, 2, [2, 0, 0])):
        expected = (1 + number) / 1.5
        assert abs(intensity[chosen].mean() - expected) < 5 * np.sqrt((1 + number) / 1.5**2 / chosen.sum())
        mean = (own.size_share + added) / (total + number)
        error = share[chosen].std(axis=0) / np.sqrt(chosen.sum())
        assert (np.abs(share[chosen].mean(axis=0) - mean) < 5 * error).all()


@pytest.mark.slow
def test_the_checks_of_a_sampler_pass():
    found = cs.check("hit-miss", draws=1000, replications=200)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["labels", "partitions", "entities"])
def test_gibbs_sampling_and_nuts_agree(prior):
    records, _ = simulate(1, num_records=24, num_values=(6, 5, 4), missing=0.1)
    settings = {"prior": prior, "draws": 1000, "chains": 4, "progress": False}
    fits = [cs.fit("hit-miss", records, method=method, **settings) for method in ("gibbs", "nuts")]
    drawn, generic = [fitted.summary().set_index("quantity") for fitted in fits]
    sites = [one for one in generic.index if one.startswith(("distortion", "value_share", "intensity", "size_share"))]
    error = np.hypot(drawn["mcse"], generic["mcse"])[sites]
    assert ((drawn["mean"] - generic["mean"])[sites].abs() / error).max() < 5
    counts = [fitted.truth.num_clusters() for fitted in fits]
    error = np.hypot(drawn.loc["num_entities", "mcse"], counts[1].std() / np.sqrt(400))
    assert abs(counts[0].mean() - counts[1].mean()) < 5 * error


@pytest.mark.slow
@pytest.mark.public_data
def test_rldata_has_as_many_entities_as_published_elsewhere(data_folder):
    """Of RLdata500 another sampler of the same model found 444.8 entities, 95 % in [438, 450]; 450 are true."""
    records = german_names(data_folder)
    fitted = cs.fit("hit-miss", records, prior="entities", threshold=8, draws=500, chains=2, progress=False)
    count = num_entities(fitted)
    assert abs(count.value - 444.8) < 1.5
    assert abs(count.interval[0] - 438) <= 2
    assert abs(count.interval[1] - 450) <= 2
    assert cs.score_partition(fitted, records)["pairwise-f1"] > 0.9
