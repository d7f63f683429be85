"""Tables in, frozen PyTrees out: the readers, the contracts that they make, and public data by name.

Nothing here imports JAX or pandas before a record is made or a data frame is met, so that a bad file is refused at
once.
"""

from consilience.data.annotations import Annotations, read_annotations
from consilience.data.catalogue import describe, get, load, names
from consilience.data.classes import ClassMap, read_class_map
from consilience.data.conll import Chains, read_conll
from consilience.data.conll_writer import write_conll
from consilience.data.constraints import Constraints, read_constraints
from consilience.data.mentions import Mentions, read_mas_xml, read_mentions
from consilience.data.mentions_writer import write_mentions
from consilience.data.partitions import Partition, read_partition
from consilience.data.predictions import Predictions, read_predictions
from consilience.data.rankings import Rankings, read_rankings
from consilience.data.ratings import Ratings, read_ratings
from consilience.data.records import Records, read_records, write_records
from consilience.data.verdicts import Verdicts, read_verdicts

__all__ = [
    "Annotations", "Chains", "ClassMap", "Constraints", "Mentions", "Partition", "Predictions", "Rankings", "Ratings",
    "Records", "Verdicts", "describe", "get", "load", "names", "read_annotations", "read_class_map", "read_conll",
    "read_constraints", "read_mas_xml", "read_mentions", "read_partition", "read_predictions", "read_rankings",
    "read_ratings", "read_records", "read_verdicts", "write_conll", "write_mentions", "write_records",
]  # fmt: skip
