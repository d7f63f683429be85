r"""Linkage of records block by block: all partitions of every small component of candidates, exactly.

Records of tables are noisy copies of entities that nobody observed, and an entity has one record or a few. The prior of
partitions is a product over clusters C of records (Poisson-Kolchin: a Poisson number of entities whose sizes have the
shares μ, records labelled at random), so that groups of records that have no candidates in common are independent,

.. math::

    p(\Pi, N) = \frac{e^{-m}}{N!} \prod_{C} m\, |C|!\, \mu_{|C|} .

Where records of one source are of different entities, :math:`1 / e_{|C|}(\varphi)` stands for :math:`|C|!`, with e the
elementary symmetric polynomial; see `by_source`.

The likelihood of a cluster has its entity's parameters summed out: hit-miss (Steorts, Hall and Fienberg 2014) or the
Dirichlet-multinomial of Broderick and Steorts (2014). Missing fields drop out.

| symbol | name | shape |
|---|---|---|
| θ | ``value_share``: how common each value is; its share among the records | (value,), fields end to end |
| b | ``distortion``: how probably a record's field is distorted | (field,) |
| m | ``intensity``: expected number of entities | () |
| μ | ``size_share``: shares of entities with 1, 2, … records | (size,) |
| φ | ``source_share``: how often records are of each source, where those of one are apart | (source,) |
| Π | the partition; its distribution in every component is kept | (partition,) |

| file | what it holds |
|---|---|
| `join`, `keys` | the candidates: exactly the pairs whose log odds exceed a threshold, and the search for them |
| `engines` | what goes through tables beyond memory or one machine |
| `parts` | what they connect, cut where it is too large |
| `likelihood`, `likelihoods` | what a likelihood is, and those that have a name |
| `error_classes`, `similar` | errors that come together; fields that are compared by similarity |
| `similar_pairs` | of similar fields: the candidates |
| `large_parts` | parts too large for that: partitions are drawn |
| `texts` | texts, hardly ever written twice in one way |
| `enumeration` | of all subsets and all partitions of a component, in NumPy or JAX |
| `linking`, `em`, `starting`, `field_weights` | the pipeline; learning on a sample; its start; weights of fields |
| `hidden_links`, `misfit` | what the threshold hides; whether the model holds |
| `overlap`, `near_misses` | fields that say the same; typing errors that hide links |
| `choice`, `laplace` | hit-miss or error classes; the interval of the number of entities |
| `repeats` | fields and records that repeat too little or too much to tell entities |
| `by_source` | what the prior is where records of one source are of different entities |
| `linkage`, `truth`, `tables`, `canonical` | what comes out: entities, pairs, review, canonical records |
| `priors`, `parameters`, `model` | the NumPyro function with the linkage summed out |
| `gibbs` | links and all hyperparameters drawn, on a wide graph |
| `sampler`, `densities`, `conjugate` | what draws: partitions in machine code, hyperparameters given these |
| `entity_interval` | the number of entities after EM, by a short Gibbs run |
| `simulation`, `words` | records with known entities |

By EM the hyperparameters are point estimates. The interval of the number of entities adds what is open about them, and
about the links that the threshold hides, by Laplace's method; where nobody knows of these, it is that of the links
alone, too narrow. That of Gibbs sampling holds where the model does. Where errors are not independent between fields,
as in lists that were made by one error in every duplicate, small probabilities are too large, and neither holds; the
fit says when its data look like that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Key
from consilience.data.records import Records
from consilience.models import settings
from consilience.models.block_linkage.choice import LEAST_GAIN
from consilience.models.block_linkage.enumeration import restriction_setting
from consilience.models.block_linkage.gibbs.outside import outside_finding, outside_warning
from consilience.models.block_linkage.gibbs.sampler import GIBBS, wide_threshold
from consilience.models.block_linkage.gibbs.truth import DrawnLinks, label_free
from consilience.models.block_linkage.join import join_rule
from consilience.models.block_linkage.likelihoods import AUTO, LIKELIHOODS, Likelihood
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.linking import engine_for, estimate
from consilience.models.block_linkage.misfit import LEAST_LINKS, Misfit
from consilience.models.block_linkage.model import SITES, Linkable, density, found_by_wide, prepared
from consilience.models.block_linkage.near_misses import near_miss_notes
from consilience.models.block_linkage.overlap import overlap_notes
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.priors import Priors, RareDistortion
from consilience.models.block_linkage.similar import for_data, is_known
from consilience.models.block_linkage.simulation import SIMULATION, simulate
from consilience.models.block_linkage.starting import hyperparameters
from consilience.models.block_linkage.tables import TABLES, expected_clusters
from consilience.models.block_linkage.truth import BlockPartition, DrawnLinkage, drawn_partitions
from consilience.models.interface import Account, Exact, Generic, Model
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Sites
from consilience.notes import IN_DETAILS, Level, Note, Remedy
from consilience.rounding import written

__all__ = ["MODEL", "Priors", "RareDistortion", "Settings", "model", "simulate"]

_MANY_BEYOND, _MOST_PARTED = 0.05, 0.1  # of the records; of the pairs in large parts
_LARGE_SHARE = 0.01
_HARDLY_ANY, _FEW_SEVERAL = 0.05, 5  # links
_OFTEN_DISTORTED = 0.5
_OTHER_ERRORS: dict[bool, tuple[str, tuple[Remedy, ...]]] = {
    False: (
        "try {likelihood}, for records that are copies with no error, one or many",
        (Remedy("likelihood", "error-classes"),),
    ),
    True: ("try {likelihood}, for fields that err independently", (Remedy("likelihood", "hit-miss"),)),
}
"""What to try where the model does not hold, by whether its errors have classes."""


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `block-linkage`; see the fields."""

    likelihood: str | Likelihood = setting(
        AUTO, "of an entity's records: copies with errors by field (hit-miss), or by record (error-classes), or values "
        "by the entity's own distribution; auto: the better of the first two, by em", choices=(AUTO, *LIKELIHOODS),
    )  # fmt: skip
    restriction: str = restriction_setting()
    threshold: float = setting(4.0, "candidates are pairs of records with log odds above minus this")
    largest: int = setting(
        6, "most records of a part whose partitions are all gone through; above 7 it takes long", at_least=2.0
    )
    size_limit: int = setting(1000, "most records of a part; one of more than `largest` is drawn by em", at_least=2.0)
    decision: str = setting(
        "auto", "posterior: the partition by its probability; closure: what pairs with log odds above `at` connect; "
        "auto: closure where many records are in large parts and draws part such pairs",
        choices=("auto", "posterior", "closure"),
    )  # fmt: skip
    at: float = setting(4.5, "log odds of pairs that a closure joins")
    weights: str | dict = setting(
        "equal", "how much fields count, as {'venue': 0.1}; auto: the less, the more they err with others",
        choices=("equal", "auto"),
    )  # fmt: skip
    wide: float = setting(
        0.0, "the threshold of gibbs, whose candidates are many; 0 stands for 10, or 12 where values are missing",
        at_least=0.0,
    )  # fmt: skip

    def sizes(self, data: Any) -> dict[str, int]:
        """Return how many sizes entities may have."""
        return {"size": self.largest}


def truth(
    posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int
) -> BlockPartition | DrawnLinks | DrawnLinkage:
    """Return the partitions of all components with their probabilities; of draws, a partition for each.

    Of the Gibbs sampler it is the one that was drawn; of NUTS it is drawn now.

    Parameters
    ----------
    posterior, resolved : of the fit.
    key, num_draws : of the draws.
    """
    data, own, draws = resolved.data, resolved.settings, posterior.draws()
    if "probability" in posterior.hidden:
        return BlockPartition(
            Linkage.of(posterior), key=key, num_draws=num_draws, records=data.records, resolved=resolved
        )
    if "cluster" in draws:
        return DrawnLinks(draws, data, threshold=wide_threshold(data, own.wide))
    found = prepared(resolved).data
    cluster = drawn_partitions(found, draws, likelihood=own.likelihood, key=key)
    (share, distortion), sizes = hyperparameters(posterior, data), np.asarray(draws["size_share"], float)
    mean = Parameters(share, distortion, float(np.mean(draws["intensity"])), sizes.mean(axis=0))
    among = found_by_wide(data, mean, likelihood=own.likelihood, threshold=own.threshold)
    return DrawnLinkage(cluster, threshold=own.threshold, found_share=among, cut=found.cut, alike=found.alike)


def summarised(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Return what diagnostics are about: of the Gibbs sampler numbers of entities and pairs in the place of labels.

    The shares of values are left out as well: they are many, and each says next to nothing of the linkage.
    """
    if "cluster" not in samples:
        return dict(samples)
    return label_free({site: values for site, values in samples.items() if site != "value_share"})


def says(account: Account) -> Iterator[Note]:
    """Say what only the outcome tells: what is wrong with it, and what the candidates leave out."""
    posterior, data = account.posterior, account.resolved.data
    yield from overlap_notes(data)
    if "probability" in posterior.hidden:
        found = Linkage.of(posterior)
        yield from _wrong_with_estimate(found, data)
        yield from near_miss_notes(account.truth.near_misses, data)
        yield from _chosen_by(found, data, account.resolved.settings.likelihood)
        yield from _joined_by(found, data, account.resolved.settings.likelihood)
        yield from _left_out(found, data)
    elif "cluster" in posterior.sites:
        if np.size(posterior.cluster):  # the run did not end before its first draw
            yield from _wrong_with_draws(account.truth, data)
            yield holding(account.truth.misfit)
            yield outside_finding(account.truth.outside)
    else:
        if "class_share" not in posterior.sites:
            yield from often_distorted(hyperparameters(posterior, data)[1], data)
        yield from linkage_notes(prepared(account.resolved).data, data)


def _wrong_with_estimate(posterior: Linkage, data: Records) -> Iterator[Note]:
    """Say what is wrong with the outcome of EM: errors come together, entities are too large, something was cut."""
    if posterior.links_nothing():
        yield Note(
            Level.error,
            "no two records were linked, so nothing was learned about errors: compare more fields, leave out those "
            "that differ in nearly every record, raise {threshold}, or check that the files write values alike",
            (Remedy("threshold"),),
        )
        yield from _given_up(posterior, Level.error)
        return
    # In records with many errors they are often distorted by definition.
    if not len(posterior.class_share):
        yield from often_distorted(posterior.distortion, data)
    remedy, remedies = _OTHER_ERRORS[bool(len(posterior.class_share))]
    if len(posterior.tried):
        remedy, remedies = "hit-miss and error-classes were tried, and neither holds", remedies[:0]
    yield from not_holding(posterior.misfit(), data, remedy, remedies)
    yield from _closed(posterior)
    yield from _unsettled(posterior)
    yield from _given_up(posterior, Level.error)


def not_holding(check: Misfit, data: Records, remedy: str, remedies: tuple[Remedy, ...]) -> Iterator[Note]:
    """Say that the model does not hold, where it does not, and what to try."""
    if check.fails:
        given = ", or the pairs given leave out what differs more" if data.candidate is not None else ""
        yield Note(
            Level.error,
            f"{check.words}: linked records differ in other numbers of fields than it expects ({check}){given}; do not "
            f"trust small probabilities of pairs either; {remedy}",
            remedies,
        )


def holding(check: Misfit, *, besides: str = "") -> Note:
    """Return under which conditions the interval of the number of entities holds; ``besides`` names one more."""
    fits = f"; linked records differ in as many fields as it expects ({check})" if check.holds else ""
    return Note(Level.note, f"the interval of the number of entities holds if the model does{besides}{fits}")


def _too_large(largest: int) -> Note:
    text = f"many entities have {largest} records, the most that is looked at; raise {{largest}}"
    return Note(Level.error, text, (Remedy("largest"),))


def _wrong_with_draws(truth: DrawnLinks, data: Records) -> Iterator[Note]:
    """Say what is wrong with the outcome of the Gibbs sampler."""
    with_classes = "class_share" in truth.draws
    # In records with many errors they are often distorted by definition.
    if not with_classes:
        yield from often_distorted(truth.draws["distortion"].mean(axis=0), data)
    remedy, remedies = _OTHER_ERRORS[with_classes]
    yield from not_holding(truth.misfit, data, remedy, remedies)
    yield from outside_warning(truth.outside, float(truth.num_clusters().std()), truth.threshold)
    size_share, counts = truth.draws["size_share"], truth.size_counts()
    largest = size_share.shape[1]
    if size_share[:, -1].mean() > _LARGE_SHARE and len(counts) >= largest and counts[largest - 1] >= 1:
        yield _too_large(largest)


def linkage_notes(found: Linkable | DrawnLinkage, data: Records) -> Iterator[Note]:
    """Say how candidates that never change were found, and which of them were given up."""
    by = "were found once, with a distortion of .05 in every field" if data.candidate is None else "were given"
    yield from _given_up(found, Level.note)
    yield Note(Level.note, f"the candidates {by}; what they leave out is in the table loss")


def _closed(posterior: Linkage) -> Iterator[Note]:
    """Say that the partition is a closure, or that one would be better."""
    share = float(posterior.beyond) / max(int(posterior.num_records), 1)
    parted = f"{100 * float(posterior.parted):.0f} %"
    torn = (
        f"draws have {parted} of the pairs apart that are links for themselves, as happens where "
        "fields err together: {decision} joins all that strong pairs connect, without probabilities or an interval"
    )
    if np.isnan(posterior.closure):
        if share > _MANY_BEYOND and posterior.parted > _MOST_PARTED:
            yield Note(Level.error, torn, (Remedy("decision", "closure"),))
        return
    why = "" if np.isnan(posterior.parted) else (
        f", since {100 * share:.0f} % of the records are in parts with more than {{largest}} records, of which draws "
        f"have {parted} of the pairs apart that are links for themselves: fields err together there"
    )
    yield Note(
        Level.error,
        f"entities are what pairs with log odds above {written(float(posterior.closure), 'g')} connect{why}; "
        "probabilities are 0 or 1, and the number of entities has no interval. {decision} draws them all the same",
        (*((Remedy("largest"),) if why else ()), Remedy("decision", "posterior")),
    )


def _unsettled(posterior: Linkage) -> Iterator[Note]:
    """Say how many large parts were drawn until the end without agreement of their chains."""
    if number := int(posterior.unsettled):
        text = (
            f"in {number:,.0f} of the parts with more records than {{largest}} the draws from two starts did not agree "
            "on the number of entities: do not trust it; compare more fields"
        )
        yield Note(Level.error, text, (Remedy("largest"),))


def _given_up(posterior: Linkage | Linkable | DrawnLinkage, level: Level) -> Iterator[Note]:
    """Say which candidates were given up, and which records were never candidates because many are alike."""
    components, records, most, pairs_lost, links_lost = posterior.cut.tolist()
    if components:
        groups = (
            f"1 group of {records:,.0f} records that may belong together has too many partitions to try them all, and "
            "was cut at its weakest links"
            if components == 1
            else f"{components:,.0f} groups of records that may belong together, {most:,.0f} in the largest and "
            f"{records:,.0f} in all, have too many partitions to try them all, and were cut at their weakest links"
        )
        given_up = f"{pairs_lost:,.0f} pair{' is' if pairs_lost == 1 else 's are'} left unlinked without a decision"
        text = (
            f"{groups}: {given_up}, and about {links_lost:,.1f} links are expected to be among them; a lower threshold "
            "leaves fewer pairs to decide, and makes groups smaller"
        )
        yield Note(level, text)
    alike, pairs_alike, links_alike = posterior.alike.tolist()
    if alike:
        yield Note(
            level,
            f"{alike:,.0f} records are like others in all fields, but of values so common that their "
            f"{pairs_alike:,.0f} pairs, worth {links_alike:,.1f} links, were not looked at: do not trust that each is "
            "alone; compare more fields, or keep one of each",
        )


def often_distorted(distortion: np.ndarray, data: Records) -> Iterator[Note]:
    """Name the fields that linked records hardly ever agree in."""
    names = np.arange(data.num_fields) if data.fields is None else np.asarray(data.fields, object)
    often = [str(name) for name in names[distortion > _OFTEN_DISTORTED]]
    if often:
        yield Note(
            Level.error,
            f"linked records almost never agree in {', '.join(often)}: is it written differently in the files? if it "
            "does not describe the entity, leave it out of the fields",
        )


def _chosen_by(posterior: Linkage, data: Records, likelihood: Any) -> Iterator[Note]:
    """Name the likelihoods that were tried, where none was asked for."""
    if likelihood != AUTO:
        return
    if not len(posterior.tried):
        why = "it knows no similarity of values"
        if posterior.differing[0].sum() < LEAST_LINKS:
            why = "too few pairs are linked to tell"
        elif data.similar is None or not np.any(data.similar):
            why = _no_cause(posterior.differing)
        text = "errors in the fields of a record were taken as independent (likelihood hit-miss); a model of errors "
        yield Note(Level.note, f"{text}that come together was not tried, for {why}", about=IN_DETAILS)
        return
    own, rest = posterior.tried
    if not len(posterior.class_share):
        yield Note(Level.note, _kept(own, rest))
        return
    text = (
        f"the likelihood error-classes was taken: its log evidence is {rest[0] - own[0]:,.1f} above that of hit-miss, "
        f"its disagreement with the data {rest[1]:.2f} and not {own[1]:.2f} on a scale to 1; by hit-miss there would "
        f"be {own[2]:,.0f} entities"
    )
    # Error classes fit nearly any errors: where they are taken, the number is as certain as that errors have classes.
    yield Note(Level.warning, text)


def _kept(own: np.ndarray, rest: np.ndarray) -> str:
    """Say why hit-miss was kept, from the rows of `Linkage.tried`: what error classes lack of `choice`'s rule."""
    gain, nearer = rest[0] - own[0], rest[1] < own[1]
    disagreement = f"{rest[1]:.2f} against {own[1]:.2f} on a scale to 1"
    fits = f"fit the linked records {'better' if nearer else 'no better'} (disagreement {disagreement})"
    if gain <= 0:
        why = f"have a log evidence that is {-gain:,.1f} lower, {'though' if nearer else 'and'} they {fits}"
    elif nearer:
        why = (
            f"{fits}, but gain only {gain:,.1f} in log evidence: less than {LEAST_GAIN} for each expected link, which "
            "is asked of them because they follow nearly any errors"
        )
    else:
        why = f"{fits}, although their log evidence is {gain:,.1f} higher"
    return (
        f"the likelihood hit-miss was taken, because error-classes {why}; by error-classes there would be "
        f"{rest[2]:,.0f} entities"
    )


def _no_cause(differing: np.ndarray) -> str:
    """Say in how many fields linked records differ, as seen and as predicted, and how little that is to go by."""
    number = differing[0].sum()
    some, several = (differing[:, fewest:].sum(axis=1) * [100 / number, 100] for fewest in (1, 2))
    weak = "pairs that differ in several fields are seldom linked"
    if (few := several[1] / 100 * number) < _FEW_SEVERAL:
        weak = f"of {number:,.0f} links only {few:.1f} were expected to differ in several fields"
    return (
        f"linked records differ in about as many fields as predicted: {some[0]:.1f} % of them in one or more "
        f"(predicted {some[1]:.1f} %), {several[0]:.1f} % in two or more ({several[1]:.1f} %). That is weak evidence: "
        f"{weak}"
    )


def _joined_by(posterior: Linkage, data: Records, likelihood: Any) -> Iterator[Note]:
    """Name the fields by which candidates were found, where there are others."""
    if data.candidate is not None or data.fields is None or not is_known(likelihood):
        return
    chosen = for_data(likelihood, data, posterior.value_share)
    rule = join_rule(data, posterior.parameters(), chosen, threshold=float(posterior.threshold))
    if len(rule.fields) >= np.sum(np.diff(data.first_value) > 1):
        return
    names = ", ".join(map(str, np.asarray(data.fields, object)[np.sort(rule.fields)]))
    text = f"candidates were found by the fields that tell most, {names}; the others count once a pair is found"
    yield Note(Level.note, text)


def _left_out(posterior: Linkage, data: Records) -> Iterator[Note]:
    """Say how many links the candidates leave out, and how many entities there are with them; or why nobody knows."""
    if text := _left_out_in_words(posterior, data):
        # Of what the model corrects the number of entities for nobody has to know first.
        yield Note(Level.note, text, about=IN_DETAILS if _corrects(posterior, data) else "")


def _corrects(posterior: Linkage, data: Records) -> bool:
    """Return whether the number of entities is corrected for links that are not among the candidates."""
    by_similarity = data.similar is not None and bool(np.any(data.similar))
    return bool(np.isfinite(posterior.found_share)) and not by_similarity and posterior.tells_hidden()


def _left_out_in_words(posterior: Linkage, data: Records) -> str:
    if np.isnan(posterior.found_share) and data.candidate is None:
        return "how many links are not among the candidates is not known with this likelihood"
    if np.isnan(posterior.found_share):
        return "the candidates were given: how many links are not among them is not known"
    if posterior.links_nothing():
        return ""  # the model learned nothing from which to expect links
    if data.similar is not None and np.any(data.similar):
        return (
            f"by how the linked records differ, {100 * float(posterior.found_share):.1f} % of all links are among the "
            "candidates: the number of entities is not corrected for the others"
        )
    expected = f"the estimate expects {100 * float(posterior.found_share):.1f} % of all links among the compared pairs"
    if not posterior.tells_hidden():
        why = "the linked pairs do not look as it expects"
        if posterior.differing[0].sum() < LEAST_LINKS:
            why = "too few pairs are linked to tell whether it fits"
        return f"{expected}, but {why}: the number of entities is not corrected for the others"
    mean, corrected = expected_clusters(posterior)
    more = "hardly any" if mean - corrected < _HARDLY_ANY else f"about {mean - corrected:,.1f}"
    return f"{expected}; among the others {more} more links are expected"


MODEL = Model(
    name="block-linkage",
    title="records of the same entity, their true values and errors summed out",
    paper="""@inproceedings{steorts2014smered,
  title     = {{SMERED}: A {B}ayesian Approach to Graphical Record Linkage and De-duplication},
  author    = {Steorts, Rebecca C. and Hall, Rob and Fienberg, Stephen E.},
  booktitle = {Proceedings of the Seventeenth International Conference on Artificial Intelligence and Statistics},
  pages     = {922--930},
  year      = {2014}
}""",
    takes=(Records,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        *SITES, summarised=summarised,
        hidden={
            "first": ("component_plus_one",), "member": ("member",), "first_partition": ("component_plus_one",),
            "probability": ("partition",), "evidence": ("pass",), "cut": ("5",), "alike": ("3",),
            "large": ("large_member",), "large_part": ("large_member",), "drawn": ("kept_draw", "large_member"),
            "differing": ("2", "field_plus_one"), "tried": ("likelihood", "3"),
            "larger_sizes": ("larger_size",),
            "powers": ("weighted_field",),
        },
    ),
    density=density,
    engines=(
        Exact(solve=estimate, name="em", devices=True, engines=engine_for),
        Generic(name="nuts", prepare=prepared), GIBBS,
    ),
    truth=truth,
    tables=TABLES,
    says=says,
    simulation=SIMULATION,
)  # fmt: skip
model = MODEL.model
