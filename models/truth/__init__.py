"""What a member's `truth` returns: draws of something that nobody observed, which answer questions.

| file | what it holds |
|---|---|
| `truth` | kinds, questions, and what every truth can be asked |
| `classes` | what plausibilities and labels of items share, and how annotators err |
| `plausibilities`, `labels` | their draws, posteriors and point estimates |
| `entries` | the classes that were named, item by item |
| `partitions` | who is together |
| `chains` | the entities of mentions, which labels of mentions make |
| `views` | several clusterings of the same items |
| `against_gold` | classes beside labels that are known: how certain, and how often right |
| `verdicts` | two classes behind the verdicts of judges, right and wrong |
"""

from consilience.models.truth.classes import Crowd, leading
from consilience.models.truth.entries import Entries
from consilience.models.truth.labels import LabelDraws, LabelProbabilities
from consilience.models.truth.plausibilities import DirichletTruth, PlausibilityDraws, PointTruth
from consilience.models.truth.truth import CHAINS, CLASSES, Ranked, Truth, truth_of

__all__ = [
    "CHAINS", "CLASSES", "Crowd", "DirichletTruth", "Entries", "LabelDraws", "LabelProbabilities",
    "PlausibilityDraws", "PointTruth", "Ranked", "Truth", "leading", "truth_of",
]  # fmt: skip
