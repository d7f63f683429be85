"""What a member's `truth` returns: draws of something that nobody observed, which answer questions.

| file | what it holds |
|---|---|
| `truth` | kinds, questions, and what every truth can be asked |
| `classes` | plausibilities and labels of items, and how annotators err |
| `partitions` | who is together |
| `chains` | the entities of mentions, which labels of mentions make |
| `views` | several clusterings of the same items |
"""

from consilience.models.truth.classes import (
    Crowd,
    DirichletTruth,
    Entries,
    LabelDraws,
    LabelProbabilities,
    PlausibilityDraws,
    PointTruth,
    leading,
)
from consilience.models.truth.truth import CHAINS, CLASSES, Ranked, Truth, truth_of

__all__ = [
    "CHAINS", "CLASSES", "Crowd", "DirichletTruth", "Entries", "LabelDraws", "LabelProbabilities",
    "PlausibilityDraws", "PointTruth", "Ranked", "Truth", "leading", "truth_of",
]  # fmt: skip
