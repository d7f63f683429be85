# Written by .ci/stubs from the table of names and the registry; do not edit.
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TextIO, TypeAlias, overload

import pandas

from consilience._version import __version__ as __version__
from consilience import estimators
from consilience.data import Annotations as Annotations
from consilience.data import Chains as Chains
from consilience.data import ClassMap as ClassMap
from consilience.data import Mentions as Mentions
from consilience.data import Partition as Partition
from consilience.data import Predictions as Predictions
from consilience.data import Rankings as Rankings
from consilience.data import Ratings as Ratings
from consilience.data import Records as Records
from consilience.data import Verdicts as Verdicts
from consilience.data import load as load
from consilience.data import read_annotations as read_annotations
from consilience.data import read_class_map as read_class_map
from consilience.data import read_conll as read_conll
from consilience.data import read_constraints as read_constraints
from consilience.data import read_mas_xml as read_mas_xml
from consilience.data import read_mentions as read_mentions
from consilience.data import read_partition as read_partition
from consilience.data import read_predictions as read_predictions
from consilience.data import read_rankings as read_rankings
from consilience.data import read_ratings as read_ratings
from consilience.data import read_records as read_records
from consilience.data import read_verdicts as read_verdicts
from consilience.data import write_conll as write_conll
from consilience.data import write_mentions as write_mentions
from consilience.data import write_records as write_records
from consilience.data.samples import example as example
from consilience.data.coding import code as code
from consilience.data.coded import shards as shards
from consilience.inference.compilation import keep_compiled as keep_compiled
from consilience.inference.fitting import Fit as Fit
from consilience.inference.loading import load_fit as load_fit
from consilience.evaluation.adjustment import adjusted as adjusted
from consilience.evaluation.agreement import Agreement as Agreement
from consilience.evaluation.agreement import PosteriorAgreement as PosteriorAgreement
from consilience.evaluation.agreement import agreement as agreement
from consilience.evaluation.certainties import expected_risk as expected_risk
from consilience.evaluation.comparison import compare as compare
from consilience.evaluation.leaderboard import Comparison as Comparison
from consilience.evaluation.clustering.baselines import baseline as baseline
from consilience.evaluation.conformal_sets import Conformal as Conformal
from consilience.evaluation.conformal_sets import conformal as conformal
from consilience.evaluation.coreference_scores import CoreferenceScores as CoreferenceScores
from consilience.evaluation.coreference_scores import score_coreference as score_coreference
from consilience.evaluation.classes import Metric as Metric
from consilience.evaluation.partition_scores import PartitionScores as PartitionScores
from consilience.evaluation.partition_scores import entity_probability as entity_probability
from consilience.evaluation.partition_scores import expected_scores as expected_scores
from consilience.evaluation.partition_scores import num_entities as num_entities
from consilience.evaluation.partition_scores import score_partition as score_partition
from consilience.evaluation.another_label import next_labels as next_labels
from consilience.evaluation.scores import Score as Score
from consilience.evaluation.scores import correlation as correlation
from consilience.evaluation.silver import SilverChains as SilverChains
from consilience.evaluation.silver import silver_chains as silver_chains
from consilience.models.mpa.scenarios import simulate_mentions as simulate_mentions
from consilience.models.block_linkage import engines as engines
from consilience.models.block_linkage.simulation import simulate_records as simulate_records
from consilience.evaluation.leave_one_out import annotator_agreement as annotator_agreement
from consilience.evaluation.rank_overlap import annotator_overlap as annotator_overlap
from consilience.sweeping import sweep as sweep
from consilience.checking import Check as Check
from consilience.reporting import report as report
from consilience.inference.checkpoints import Checkpoint
from consilience.models.interface import Model
from consilience.inference.loop import Progress
from builtins import dict
from consilience.models.block_linkage.likelihood import Likelihood


class Frame(Protocol):
    """A data frame of any library, such as pandas, Polars or PyArrow."""

    def __dataframe__(self, *arguments: Any, **options: Any) -> Any: ...

Source: TypeAlias = str | os.PathLike[str] | TextIO | Mapping[Any, Any] | Sequence[Mapping[str, Any]] | Frame
"""What a contract is read from: a path, an open file, columns, rows or a data frame."""

class DirichletFit(Fit):
    """A fit of `dirichlet`: plausibilities of single labels, with an exact Dirichlet posterior."""

    def labels(self) -> pandas.DataFrame:
        """The most plausible label of each item, and how sure that is."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class NormalInverseGammaFit(Fit):
    """A fit of `normal-inverse-gamma`: ratings on a scale, on which side of a threshold the mean lies, with an exact posterior."""

    def labels(self) -> pandas.DataFrame:
        """The side of the threshold on which each item's mean lies, and how sure that is."""

    def means(self) -> pandas.DataFrame:
        """The mean of each item, and its variance."""

    def sides(self, *arguments: Any, **choice: Any) -> Any:
        """The mean and the side of each item, as its page has them."""

class MajorityVoteFit(Fit):
    """A fit of `majority-vote`: the label that most annotators gave, ties at random, a point estimate."""

    def labels(self) -> pandas.DataFrame:
        """The winner of each item, of tied ones the lowest code."""

    def shares(self) -> pandas.DataFrame:
        """The votes for each label of each item, most votes first."""

    def annotators(self) -> pandas.DataFrame:
        """How often each annotator gave the label that won."""

    def accuracy(self) -> pandas.DataFrame:
        """Accuracy of majority vote against gold labels, ties broken at random."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class DawidSkeneFit(Fit):
    """A fit of `dawid-skene`: labels by annotators who each have a confusion matrix."""

    def labels(self) -> pandas.DataFrame:
        """The most probable label of each item."""

    def probabilities(self, *, wide: Any = ...) -> pandas.DataFrame:
        """How probable each label of each item is; with wide=True a column for each label."""

    def annotators(self, *, level: Any = ...) -> pandas.DataFrame:
        """How reliable each annotator is, and how often she was right on her own items."""

    def confusion(self, *, annotators: Any = ..., level: Any = ...) -> pandas.DataFrame:
        """How probably an annotator gives an item of a class a label."""

    def crowd(self, *, level: Any = ...) -> pandas.DataFrame:
        """How the crowd as a whole labels items of each class."""

    def prevalence(self, *, level: Any = ...) -> pandas.DataFrame:
        """The shares of the classes among items."""

    def bias(self) -> pandas.DataFrame:
        """How much more often each annotator gives each label than her items have it."""

    def annotator_pairs(self) -> pandas.DataFrame:
        """How often two annotators agree, and how often the model expects them to."""

    def groupings(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How well all is explained if two of up to 10 annotators share a source."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class MaceFit(Fit):
    """A fit of `mace`: annotators who know the label or guess (MACE), by variational Bayes as published, Gibbs or EM."""

    def labels(self) -> pandas.DataFrame:
        """The most probable label of each item."""

    def probabilities(self, *, wide: Any = ...) -> pandas.DataFrame:
        """How probable each label of each item is; with wide=True a column for each label."""

    def annotators(self, *, level: Any = ...) -> pandas.DataFrame:
        """How reliable each annotator is, and how often she was right on her own items."""

    def confusion(self, *, annotators: Any = ..., level: Any = ...) -> pandas.DataFrame:
        """How probably an annotator gives an item of a class a label."""

    def crowd(self, *, level: Any = ...) -> pandas.DataFrame:
        """How the crowd as a whole labels items of each class."""

    def prevalence(self, *, level: Any = ...) -> pandas.DataFrame:
        """The shares of the classes among items."""

    def bias(self) -> pandas.DataFrame:
        """How much more often each annotator gives each label than her items have it."""

    def annotator_pairs(self) -> pandas.DataFrame:
        """How often two annotators agree, and how often the model expects them to."""

    def groupings(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How well all is explained if two of up to 10 annotators share a source."""

    def guesses(self, *, annotators: Any = ..., level: Any = ...) -> pandas.DataFrame:
        """What each annotator says when she guesses."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class OneCoinFit(Fit):
    """A fit of `one-coin`: labels by annotators who each are right with one probability."""

    def labels(self) -> pandas.DataFrame:
        """The most probable label of each item."""

    def probabilities(self, *, wide: Any = ...) -> pandas.DataFrame:
        """How probable each label of each item is; with wide=True a column for each label."""

    def annotators(self, *, level: Any = ...) -> pandas.DataFrame:
        """How reliable each annotator is, and how often she was right on her own items."""

    def confusion(self, *, annotators: Any = ..., level: Any = ...) -> pandas.DataFrame:
        """How probably an annotator gives an item of a class a label."""

    def crowd(self, *, level: Any = ...) -> pandas.DataFrame:
        """How the crowd as a whole labels items of each class."""

    def prevalence(self, *, level: Any = ...) -> pandas.DataFrame:
        """The shares of the classes among items."""

    def bias(self) -> pandas.DataFrame:
        """How much more often each annotator gives each label than her items have it."""

    def annotator_pairs(self) -> pandas.DataFrame:
        """How often two annotators agree, and how often the model expects them to."""

    def groupings(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How well all is explained if two of up to 10 annotators share a source."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class GladFit(Fit):
    """A fit of `glad`: able annotators and easy items (GLAD), by coordinate ascent on a grid."""

    def labels(self) -> pandas.DataFrame:
        """The most probable label of each item."""

    def probabilities(self, *, wide: Any = ...) -> pandas.DataFrame:
        """How probable each label of each item is; with wide=True a column for each label."""

    def annotators(self, *, level: Any = ...) -> pandas.DataFrame:
        """How reliable each annotator is, and how often she was right on her own items."""

    def confusion(self, *, annotators: Any = ..., level: Any = ...) -> pandas.DataFrame:
        """How probably an annotator gives an item of a class a label."""

    def crowd(self, *, level: Any = ...) -> pandas.DataFrame:
        """How the crowd as a whole labels items of each class."""

    def prevalence(self, *, level: Any = ...) -> pandas.DataFrame:
        """The shares of the classes among items."""

    def bias(self) -> pandas.DataFrame:
        """How much more often each annotator gives each label than her items have it."""

    def annotator_pairs(self) -> pandas.DataFrame:
        """How often two annotators agree, and how often the model expects them to."""

    def groupings(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How well all is explained if two of up to 10 annotators share a source."""

    def items(self) -> pandas.DataFrame:
        """How difficult each item is."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class MpaFit(Fit):
    """A fit of `mpa`: mention-pair annotations: labels from an open list, and each annotator's sensitivity and specificity."""

    def labels(self) -> pandas.DataFrame:
        """The label of each item and its probability among the item's candidates."""

    def candidates(self) -> pandas.DataFrame:
        """All candidates: how probably each is true by itself, and the one."""

    def annotators(self) -> pandas.DataFrame:
        """The profile of each annotator in each class on which she decided."""

    def ambiguous(self) -> pandas.DataFrame:
        """Items with several candidates that are more probably true than not."""

    def hyperparameters(self) -> pandas.DataFrame:
        """The Beta priors of the profiles, as they were given or learned."""

    def chains_prior(self) -> pandas.DataFrame:
        """What a posterior of partitions learned of entities and of errors."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often labels of each stated certainty are the gold label."""

    def calibration_score(self, *arguments: Any, **choice: Any) -> Any:
        """How right the stated certainties are, against the gold labels."""

class IrnFit(Fit):
    """A fit of `irn`: inverse rank normalisation of partial rankings with ties, a point estimate."""

    def labels(self) -> pandas.DataFrame:
        """The most plausible label of each item, and how sure that is."""

class PrirnFit(Fit):
    """A fit of `prirn`: plausibilities of partial rankings with ties, Dirichlet around inverse rank normalisation."""

    def labels(self) -> pandas.DataFrame:
        """The most plausible label of each item, and how sure that is."""

class PlackettLuceFit(Fit):
    """A fit of `plackett-luce`: plausibilities of partial rankings with ties and unranked classes, sampled from the exact likelihood."""

    def labels(self) -> pandas.DataFrame:
        """The most plausible label of each item, and how sure that is."""

    def plausibilities(self) -> pandas.DataFrame:
        """The plausibility of each class that somebody named."""

    def others(self) -> pandas.DataFrame:
        """The summed plausibility of the classes of an item that nobody named."""

class BlockLinkageFit(Fit):
    """A fit of `block-linkage`: records of the same entity, their true values and errors summed out."""

    def entities(self) -> Any:
        """The records: the entity of each in the most probable partition, named by its first record."""

    def pairs(self) -> pandas.DataFrame:
        """The pairs of records that may be of one entity, the most probable first."""

    def review(self, *, number: Any = ..., seed: Any = ...) -> pandas.DataFrame:
        """Pairs of records for a person to decide: those in doubt, or the most uncertain ones and some at random."""

    def matching_sets(self) -> pandas.DataFrame:
        """The records: of each the set of records that is most probably exactly its entity."""

    def canonical(self, *, limit: Any = ...) -> pandas.DataFrame:
        """The true values of all entities: of each field the most probable one and the next."""

    def fields(self) -> pandas.DataFrame:
        """The fields: how many values, how many missing, and how often they are distorted."""

    def weights(self) -> pandas.DataFrame:
        """What it says that a field is equal, near, different or missing in two records."""

    def unlinkable(self) -> pandas.DataFrame:
        """Which share of the records would not even be linked with a copy of themselves."""

    def candidates(self) -> pandas.DataFrame:
        """How candidates were found: keys by how many records share them, and their pairs."""

    def patterns(self) -> pandas.DataFrame:
        """How many entities have records in exactly these sources."""

    def clusters(self) -> pandas.DataFrame:
        """Numbers of entities with one record, two, …: of the estimate, and over the draws."""

    def loss(self) -> pandas.DataFrame:
        """What the candidates leave out, as far as the model can tell; NaN where nobody knows."""

    def cleaning(self, *arguments: Any, **choice: Any) -> Any:
        """What cleaning did to each column of each source, of fits by `link`."""

    def thresholds(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """What links above a threshold would give: pairs, clusters, precision and recall."""

    def explain(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """Why two records are one entity or not: the prior, each field, and the posterior."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often pairs are the same entity, by their probability, as labels say."""

    def link_new(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """Link new records with those of the fit, what was learned fixed."""

    def num_entities(self, *arguments: Any, **choice: Any) -> Any:
        """The number of entities, with its interval."""

    def expected_scores(self, *arguments: Any, **choice: Any) -> Any:
        """Scores that the estimate is expected to have."""

    def entity_probability(self, *arguments: Any, **choice: Any) -> Any:
        """How probably some records are exactly one entity."""

class DirichletEntityFit(Fit):
    """A fit of `dirichlet-entity`: entities with Dirichlet values behind records, by the published coordinate ascent; small data."""

    def entities(self) -> pandas.DataFrame:
        """The entity of each record."""

    def pairs(self) -> pandas.DataFrame:
        """Pairs of records that may belong together; all others have next to no probability."""

    def review(self, *, number: Any = ..., seed: Any = ...) -> pandas.DataFrame:
        """Pairs of records for a person to decide: those in doubt, or the most uncertain ones and some at random."""

    def matching_sets(self) -> pandas.DataFrame:
        """The records: of each the set of records that is most probably exactly its entity."""

    def clusters(self) -> pandas.DataFrame:
        """Numbers of entities with one record, two, …: of the estimate, and over the draws."""

    def num_entities(self, *arguments: Any, **choice: Any) -> Any:
        """The number of entities, with its interval."""

    def expected_scores(self, *arguments: Any, **choice: Any) -> Any:
        """Scores that the estimate is expected to have."""

    def entity_probability(self, *arguments: Any, **choice: Any) -> Any:
        """How probably some records are exactly one entity."""

class HitMissFit(Fit):
    """A fit of `hit-miss`: records of the same entity, links and parameters by Gibbs sampling (SMERED)."""

    def entities(self) -> Any:
        """The records: the entity of each in the most probable partition, named by its first record."""

    def pairs(self) -> pandas.DataFrame:
        """The pairs of records that may be of one entity, the most probable first."""

    def review(self, *, number: Any = ..., seed: Any = ...) -> pandas.DataFrame:
        """Pairs of records for a person to decide: those in doubt, or the most uncertain ones and some at random."""

    def matching_sets(self) -> pandas.DataFrame:
        """The records: of each the set of records that is most probably exactly its entity."""

    def canonical(self, *, limit: Any = ...) -> pandas.DataFrame:
        """The true values of all entities: of each field the most probable one and the next."""

    def fields(self) -> pandas.DataFrame:
        """The fields: how many values, how many missing, and how often they are distorted."""

    def weights(self) -> pandas.DataFrame:
        """What it says that a field is equal, near, different or missing in two records."""

    def unlinkable(self) -> pandas.DataFrame:
        """Which share of the records would not even be linked with a copy of themselves."""

    def candidates(self) -> pandas.DataFrame:
        """How candidates were found: keys by how many records share them, and their pairs."""

    def patterns(self) -> pandas.DataFrame:
        """How many entities have records in exactly these sources."""

    def clusters(self) -> pandas.DataFrame:
        """Numbers of entities with one record, two, …: of the estimate, and over the draws."""

    def loss(self) -> pandas.DataFrame:
        """What the candidates leave out, as far as the model can tell; NaN where nobody knows."""

    def cleaning(self, *arguments: Any, **choice: Any) -> Any:
        """What cleaning did to each column of each source, of fits by `link`."""

    def thresholds(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """What links above a threshold would give: pairs, clusters, precision and recall."""

    def explain(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """Why two records are one entity or not: the prior, each field, and the posterior."""

    def calibration(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """How often pairs are the same entity, by their probability, as labels say."""

    def link_new(self, *arguments: Any, **choice: Any) -> pandas.DataFrame:
        """Link new records with those of the fit, what was learned fixed."""

    def num_entities(self, *arguments: Any, **choice: Any) -> Any:
        """The number of entities, with its interval."""

    def expected_scores(self, *arguments: Any, **choice: Any) -> Any:
        """Scores that the estimate is expected to have."""

    def entity_probability(self, *arguments: Any, **choice: Any) -> Any:
        """How probably some records are exactly one entity."""

class ExpertViewsFit(Fit):
    """A fit of `expert-views`: several clusterings of the same items, from experts who judge pairs, and from features where given."""

    def views(self) -> pandas.DataFrame:
        """The most probable cluster of each item in every view that is used."""

    def experts(self) -> pandas.DataFrame:
        """The view of each expert, and how accurate each is."""

    def answers(self) -> pandas.DataFrame:
        """How probably each expert gives each answer."""

    def view_sizes(self) -> pandas.DataFrame:
        """How probably each view is used, by how many experts, and its clusters."""

    def same_view(self) -> pandas.DataFrame:
        """How probably two experts have the same view."""

    def contradictions(self, *, limit: Any = ...) -> pandas.DataFrame:
        """Answers against which the posterior of their pair is."""

    def questions(self, *, limit: Any = ...) -> pandas.DataFrame:
        """Pairs that are most worth an answer, and whom to ask."""

    def directions(self, *, limit: Any = ...) -> pandas.DataFrame:
        """Features that tell the clusters of each view apart."""

    def evidence(self) -> pandas.DataFrame:
        """How probable each number of clusters is that was compared."""

    def ladder(self) -> pandas.DataFrame:
        """The rungs of the tempered sampler; none after coordinate ascent."""

    def restarts(self) -> pandas.DataFrame:
        """Restarts of coordinate ascent, the best first; none after sampling."""

    def predict(self, *arguments: Any, **choice: Any) -> Any:
        """Predict the clusters of items that the fit has not seen."""

    def together(self, *arguments: Any, **choice: Any) -> Any:
        """How probably two items are together, in a view or in that of an expert."""

    def partition(self, *arguments: Any, **choice: Any) -> Any:
        """The partition of the items in one view."""

    def partition_of_expert(self, *arguments: Any, **choice: Any) -> Any:
        """The partition of the items that an expert has in mind."""

    def num_views(self, *arguments: Any, **choice: Any) -> Any:
        """How many views have an expert, with an interval."""

@overload
def fit(
    model: Literal['dirichlet'],
    data: Annotations | Source,
    priors: Any = None,
    method: Literal['auto', 'exact', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    reliability: float = ...,
    alpha: float = ...,
) -> DirichletFit: ...

@overload
def fit(
    model: Literal['normal-inverse-gamma'],
    data: Ratings | Source,
    priors: Any = None,
    method: Literal['auto', 'exact', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    threshold: float,
) -> NormalInverseGammaFit: ...

@overload
def fit(
    model: Literal['majority-vote'],
    data: Annotations | Mentions | Source,
    priors: Any = None,
    method: Literal['auto', 'exact'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    gold: Literal['ignore', 'use'] = ...,
    uncertainty: Literal['ties', 'shares'] = ...,
) -> MajorityVoteFit: ...

@overload
def fit(
    model: Literal['dawid-skene'],
    data: Annotations | Source,
    priors: Any = None,
    method: Literal['auto', 'cavi', 'gibbs', 'em', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    candidates: Literal['auto', 'closed', 'observed'] = ...,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
    diagonal: float = ...,
) -> DawidSkeneFit: ...

@overload
def fit(
    model: Literal['mace'],
    data: Annotations | Source,
    priors: Any = None,
    method: Literal['auto', 'cavi', 'gibbs', 'em', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    candidates: Literal['closed', 'observed'] = ...,
    prevalence: Literal['learned', 'uniform'] = ...,
    restarts: int = ...,
    smoothing: float = ...,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
    guess_count: float = ...,
) -> MaceFit: ...

@overload
def fit(
    model: Literal['one-coin'],
    data: Annotations | Source,
    priors: Any = None,
    method: Literal['auto', 'cavi', 'gibbs', 'em', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
) -> OneCoinFit: ...

@overload
def fit(
    model: Literal['glad'],
    data: Annotations | Source,
    priors: Any = None,
    method: Literal['auto', 'cavi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
) -> GladFit: ...

@overload
def fit(
    model: Literal['mpa'],
    data: Annotations | Mentions | Source,
    priors: Any = None,
    method: Literal['auto', 'cavi', 'gibbs', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    candidates: Literal['observed', 'closed'] = ...,
    gold: Literal['ignore', 'use'] = ...,
    hyperparameters: Literal['fixed', 'learned'] = ...,
    decisions: Literal['separate', 'joint'] = ...,
    coreference: Literal['auto', 'links', 'partition'] = ...,
    antecedents: Literal['any', 'nearest'] = ...,
    rungs: int = ...,
    author: Literal[0, 1] = ...,
) -> MpaFit: ...

@overload
def fit(
    model: Literal['irn'],
    data: Rankings | Source,
    priors: Any = None,
    method: Literal['auto', 'exact'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    rank_weights: Literal['equation-14', 'published-code'] = ...,
) -> IrnFit: ...

@overload
def fit(
    model: Literal['prirn'],
    data: Rankings | Source,
    priors: Any = None,
    method: Literal['auto', 'exact', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    reliability: float | Literal['annotators'] = ...,
    rank_weights: Literal['equation-14', 'published-code'] = ...,
    alpha: float = ...,
) -> PrirnFit: ...

@overload
def fit(
    model: Literal['plackett-luce'],
    data: Rankings | Source,
    priors: Any = None,
    method: Literal['auto', 'gibbs', 'nuts', 'svi', 'em'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    reliability: float = ...,
    tempering: Literal['likelihood', 'power'] = ...,
    alpha_split: float = ...,
    alpha: float = ...,
    alpha_other: float = ...,
) -> PlackettLuceFit: ...

@overload
def fit(
    model: Literal['block-linkage'],
    data: Records | Source,
    priors: Any = None,
    method: Literal['auto', 'em', 'nuts', 'gibbs'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    likelihood: Literal['auto', 'hit-miss', 'copies', 'dirichlet-multinomial', 'error-classes'] | Likelihood = ...,
    restriction: Literal['none', 'across', 'within'] = ...,
    threshold: float = ...,
    largest: int = ...,
    size_limit: int = ...,
    decision: Literal['auto', 'posterior', 'closure'] = ...,
    at: float = ...,
    weights: Literal['equal', 'auto'] | dict = ...,
    wide: float = ...,
) -> BlockLinkageFit: ...

@overload
def fit(
    model: Literal['dirichlet-entity'],
    data: Records | Source,
    priors: Any = None,
    method: Literal['auto', 'cavi', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    support: Literal['anchored', 'dense'] = ...,
    num_entities: int = ...,
    start: Literal['records', 'random'] = ...,
    agree: int = ...,
    concentration: float = ...,
) -> DirichletEntityFit: ...

@overload
def fit(
    model: Literal['hit-miss'],
    data: Records | Source,
    priors: Any = None,
    method: Literal['auto', 'gibbs', 'nuts'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    prior: Literal['labels', 'partitions', 'entities'] = ...,
    restriction: Literal['none', 'across', 'within'] = ...,
    threshold: float = ...,
    largest: int = ...,
) -> HitMissFit: ...

@overload
def fit(
    model: Literal['expert-views'],
    data: Source,
    priors: Any = None,
    method: Literal['auto', 'gibbs', 'cavi', 'nuts', 'svi'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    clusters: int | Literal['auto'],
    views: int = ...,
    ladders: int = ...,
    rungs: int = ...,
    restarts: int = ...,
    responsibilities: Literal['free', 'tied'] = ...,
    bound: Literal['tilted', 'jensen'] = ...,
    experts: Literal['two-coin', 'symmetric', 'per-view', 'spammer'] = ...,
    cluster: Literal['exact', 'pair', 'enumerate'] = ...,
    standardize: Literal[0, 1] = ...,
    concentration: float = ...,
    weight_scale: float = ...,
) -> ExpertViewsFit: ...

@overload
def fit(
    model: Model | Callable[..., Any],
    data: Any,
    priors: Any = None,
    method: str = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    truth: Callable[..., Any] | None = None,
    **settings: Any,
) -> Fit: ...

@overload
def fit(
    model: str,
    data: Any,
    priors: Any = None,
    method: Literal['auto', 'exact', 'cavi', 'gibbs', 'em', 'svi', 'nuts'] = 'auto',
    *,
    draws: int | None = ...,
    chains: int | None = ...,
    warmup: int | None = ...,
    seed: int = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    engine: Any = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    columns: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
) -> Any: ...

def link(
    sources: 'Any',
    *,
    id: 'str | None' = None,
    fields: 'Sequence[str] | Mapping[str, str] | None' = None,
    similar: 'Mapping[str, str] | None' = None,
    entity: 'str | None' = None,
    columns: 'Mapping[str, Mapping[str, str]] | None' = None,
    clean: 'Mapping[str, str | Callable[[str], str | None]] | None' = None,
    missing_values: 'str | Sequence[str] | None' = None,
    pairs: 'Any' = None,
    labels: 'Any' = None,
    priors: 'Any' = None,
    method: 'str' = 'auto',
    draws: 'int' = 1000,
    seed: 'int' = 0,
    engine: 'Any' = 'auto',
    chains: int | None = ...,
    warmup: int | None = ...,
    max_steps: int | None = ...,
    tolerance: float | None = ...,
    accelerate: bool = ...,
    dtype: str | None = ...,
    devices: int | None = ...,
    time_limit: float | None = ...,
    checkpoint: str | os.PathLike | Checkpoint | None = ...,
    resume: bool = ...,
    annotator_groups: Mapping[str, str] | None = ...,
    read: Mapping[str, Any] | None = ...,
    progress: Progress = ...,
    likelihood: Literal['auto', 'hit-miss', 'copies', 'dirichlet-multinomial', 'error-classes'] | Likelihood = ...,
    restriction: Literal['none', 'across', 'within'] = ...,
    threshold: float = ...,
    largest: int = ...,
    size_limit: int = ...,
    decision: Literal['auto', 'posterior', 'closure'] = ...,
    at: float = ...,
    weights: Literal['equal', 'auto'] | dict = ...,
    wide: float = ...,
) -> BlockLinkageFit: ...

@overload
def check(
    model: Literal['dirichlet'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    reliability: float = ...,
    alpha: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['normal-inverse-gamma'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    threshold: float,
) -> Check: ...

@overload
def check(
    model: Literal['majority-vote'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    gold: Literal['ignore', 'use'] = ...,
    uncertainty: Literal['ties', 'shares'] = ...,
) -> Check: ...

@overload
def check(
    model: Literal['dawid-skene'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    candidates: Literal['auto', 'closed', 'observed'] = ...,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
    diagonal: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['mace'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    candidates: Literal['closed', 'observed'] = ...,
    prevalence: Literal['learned', 'uniform'] = ...,
    restarts: int = ...,
    smoothing: float = ...,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
    guess_count: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['one-coin'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
) -> Check: ...

@overload
def check(
    model: Literal['glad'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    gold: Literal['ignore', 'use'] = ...,
    dependence: float | Literal['auto', 'gold'] = ...,
) -> Check: ...

@overload
def check(
    model: Literal['mpa'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    candidates: Literal['observed', 'closed'] = ...,
    gold: Literal['ignore', 'use'] = ...,
    hyperparameters: Literal['fixed', 'learned'] = ...,
    decisions: Literal['separate', 'joint'] = ...,
    coreference: Literal['auto', 'links', 'partition'] = ...,
    antecedents: Literal['any', 'nearest'] = ...,
    rungs: int = ...,
    author: Literal[0, 1] = ...,
) -> Check: ...

@overload
def check(
    model: Literal['irn'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    rank_weights: Literal['equation-14', 'published-code'] = ...,
) -> Check: ...

@overload
def check(
    model: Literal['prirn'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    reliability: float | Literal['annotators'] = ...,
    rank_weights: Literal['equation-14', 'published-code'] = ...,
    alpha: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['plackett-luce'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    reliability: float = ...,
    tempering: Literal['likelihood', 'power'] = ...,
    alpha_split: float = ...,
    alpha: float = ...,
    alpha_other: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['block-linkage'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    likelihood: Literal['auto', 'hit-miss', 'copies', 'dirichlet-multinomial', 'error-classes'] | Likelihood = ...,
    restriction: Literal['none', 'across', 'within'] = ...,
    threshold: float = ...,
    largest: int = ...,
    size_limit: int = ...,
    decision: Literal['auto', 'posterior', 'closure'] = ...,
    at: float = ...,
    weights: Literal['equal', 'auto'] | dict = ...,
    wide: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['dirichlet-entity'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    support: Literal['anchored', 'dense'] = ...,
    num_entities: int = ...,
    start: Literal['records', 'random'] = ...,
    agree: int = ...,
    concentration: float = ...,
) -> Check: ...

@overload
def check(
    model: Literal['hit-miss'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    prior: Literal['labels', 'partitions', 'entities'] = ...,
    restriction: Literal['none', 'across', 'within'] = ...,
    threshold: float = ...,
    largest: int = ...,
) -> Check: ...

@overload
def check(
    model: Literal['expert-views'],
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    clusters: int | Literal['auto'],
    views: int = ...,
    ladders: int = ...,
    rungs: int = ...,
    restarts: int = ...,
    responsibilities: Literal['free', 'tied'] = ...,
    bound: Literal['tilted', 'jensen'] = ...,
    experts: Literal['two-coin', 'symmetric', 'per-view', 'spammer'] = ...,
    cluster: Literal['exact', 'pair', 'enumerate'] = ...,
    standardize: Literal[0, 1] = ...,
    concentration: float = ...,
    weight_scale: float = ...,
) -> Check: ...

@overload
def check(
    model: str | Model,
    data: 'Any' = None,
    *,
    priors: 'Any' = None,
    method: 'str | None' = None,
    draws: 'int' = 1000,
    chains: 'int' = 4,
    seed: 'int' = 0,
    replications: 'int | None' = None,
    quick: 'bool' = True,
    progress: 'Progress' = None,
    **settings: Any,
) -> Check: ...

@overload
def certainty(
    fit: Fit | Any,
    top: int = 1,
    *,
    of: Any = None,
    class_groups: ClassMap | Source | None = None,
    group_rule: Literal['top', 'sum'] = 'top',
    exact: bool | None = None,
) -> Score: ...

@overload
def certainty(
    fit: Fit | Any,
    top: Sequence[int],
    *,
    of: Any = None,
    class_groups: ClassMap | Source | None = None,
    group_rule: Literal['top', 'sum'] = 'top',
    exact: bool | None = None,
) -> dict[int, Score]: ...

@overload
def evaluate(
    fit: Fit | Any,
    predictions: Any,
    metric: str | Metric | None = None,
    *,
    class_groups: ClassMap | Source | None = None,
    missing: Literal['error', 'drop'] = 'error',
    unknown: Literal['error', 'drop'] = 'error',
    singletons: bool = True,
    exact: bool | None = None,
) -> Score: ...

@overload
def evaluate(
    fit: Fit | Any,
    predictions: Any,
    metric: Sequence[str | Metric],
    *,
    class_groups: ClassMap | Source | None = None,
    missing: Literal['error', 'drop'] = 'error',
    unknown: Literal['error', 'drop'] = 'error',
    singletons: bool = True,
    exact: bool | None = None,
) -> dict[str, Score]: ...

class DawidSkene(estimators.DawidSkene):
    """Dawid and Skene's model, its `probas_` tempered for workers who err together; ``dependence=0`` leaves that out."""

    def __init__(
        self,
        method: Literal['auto', 'cavi', 'gibbs', 'em', 'nuts', 'svi'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        candidates: Literal['auto', 'closed', 'observed'] = ...,
        gold: Literal['ignore', 'use'] = ...,
        dependence: float | Literal['auto', 'gold'] = ...,
        diagonal: float = ...,
    ) -> None: ...

class Dirichlet(estimators.Dirichlet):
    """Plausibilities of single labels, of workers who may have no names; ``reliability`` says how much labels count."""

    def __init__(
        self,
        method: Literal['auto', 'exact', 'nuts', 'svi'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        reliability: float = ...,
        alpha: float = ...,
    ) -> None: ...

class GLAD(estimators.GLAD):
    """Able workers and difficult tasks, its `probas_` tempered for workers who err together; ``dependence=0`` does not."""

    def __init__(
        self,
        method: Literal['auto', 'cavi'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        gold: Literal['ignore', 'use'] = ...,
        dependence: float | Literal['auto', 'gold'] = ...,
    ) -> None: ...

class Linker(estimators.Linker):
    """Which records are of one entity; options and data are those of `link`."""

    def __init__(
        self,
        method: Literal['auto', 'em', 'nuts', 'gibbs'] = 'auto',
        *,
        priors: Any = ...,
        draws: int = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        columns: Mapping[str, Mapping[str, str]] | None = ...,
        progress: Progress = ...,
        id: str | None = ...,
        fields: Sequence[str] | Mapping[str, str] | None = ...,
        similar: Mapping[str, str] | None = ...,
        entity: str | None = ...,
        clean: Mapping[str, str | Callable[[str], str | None]] | None = ...,
        missing_values: str | Sequence[str] | None = ...,
        pairs: Any = ...,
        labels: Any = ...,
        likelihood: Literal['auto', 'hit-miss', 'copies', 'dirichlet-multinomial', 'error-classes'] | Likelihood = ...,
        restriction: Literal['none', 'across', 'within'] = ...,
        threshold: float = ...,
        largest: int = ...,
        size_limit: int = ...,
        decision: Literal['auto', 'posterior', 'closure'] = ...,
        at: float = ...,
        weights: Literal['equal', 'auto'] | dict = ...,
        wide: float = ...,
    ) -> None: ...

class MACE(estimators.MACE):
    """Workers who know or guess, its `probas_` tempered for those who err together; ``dependence=0`` leaves that out."""

    def __init__(
        self,
        method: Literal['auto', 'cavi', 'gibbs', 'em', 'nuts', 'svi'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        candidates: Literal['closed', 'observed'] = ...,
        prevalence: Literal['learned', 'uniform'] = ...,
        restarts: int = ...,
        smoothing: float = ...,
        gold: Literal['ignore', 'use'] = ...,
        dependence: float | Literal['auto', 'gold'] = ...,
        guess_count: float = ...,
    ) -> None: ...

class MPA(estimators.MPA):
    """Workers with a sensitivity and a specificity for each kind of label, for labels of an open list."""

    def __init__(
        self,
        method: Literal['auto', 'cavi', 'gibbs', 'nuts', 'svi'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        candidates: Literal['observed', 'closed'] = ...,
        gold: Literal['ignore', 'use'] = ...,
        hyperparameters: Literal['fixed', 'learned'] = ...,
        decisions: Literal['separate', 'joint'] = ...,
        coreference: Literal['auto', 'links', 'partition'] = ...,
        antecedents: Literal['any', 'nearest'] = ...,
        rungs: int = ...,
        author: Literal[0, 1] = ...,
    ) -> None: ...

class MajorityVote(estimators.MajorityVote):
    """The label that most workers gave; `probas_` are shares of the votes, never tempered, as by ``dependence=0``."""

    def __init__(
        self,
        method: Literal['auto', 'exact'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        gold: Literal['ignore', 'use'] = ...,
        uncertainty: Literal['ties', 'shares'] = ...,
    ) -> None: ...

class OneCoin(estimators.OneCoin):
    """Workers of one accuracy each, its `probas_` tempered for those who err together; ``dependence=0`` does not."""

    def __init__(
        self,
        method: Literal['auto', 'cavi', 'gibbs', 'em', 'nuts', 'svi'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        annotator_groups: Mapping[str, str] | None = ...,
        progress: Progress = ...,
        gold: Literal['ignore', 'use'] = ...,
        dependence: float | Literal['auto', 'gold'] = ...,
    ) -> None: ...

class PlackettLuce(estimators.PlackettLuce):
    """Plausibilities of the classes of tasks from rankings, which may be partial and have ties."""

    def __init__(
        self,
        method: Literal['auto', 'gibbs', 'nuts', 'svi', 'em'] = 'auto',
        *,
        priors: Any = ...,
        draws: int | None = ...,
        chains: int | None = ...,
        warmup: int | None = ...,
        seed: int = ...,
        max_steps: int | None = ...,
        tolerance: float | None = ...,
        accelerate: bool = ...,
        dtype: str | None = ...,
        devices: int | None = ...,
        engine: Any = ...,
        time_limit: float | None = ...,
        checkpoint: str | os.PathLike | Checkpoint | None = ...,
        resume: bool = ...,
        progress: Progress = ...,
        reliability: float = ...,
        tempering: Literal['likelihood', 'power'] = ...,
        alpha_split: float = ...,
        alpha: float = ...,
        alpha_other: float = ...,
    ) -> None: ...
