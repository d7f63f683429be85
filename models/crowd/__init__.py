"""The crowd, written once: annotators err by a channel, and inference, truth and tables follow from it.

| file | what it holds |
|---|---|
| `votes` | the annotations as kernels read them, and the only loop over them |
| `simplices` | parameters as a tree of simplices |
| `evidence` | what an annotation says, in two forms |
| `channel` | what a model states: evidence of parameters, and outcomes of simplices |
| `ascent`, `gibbs`, `density` | CAVI, EM, Gibbs sampling, the NumPyro model, simulation |
| `gate`, `dependence` | whether the annotators agree beyond chance; how much their errors hang together |
| `truth`, `agreement`, `tables`, `pairs`, `groups` | what is told of labels, of annotators, and of pairs of them |
| `labelling` | mirror modes of confusion matrices |
| `member` | a `Model` of a channel |
"""

from __future__ import annotations

from consilience.models.crowd.channel import Channel, CrowdSettings
from consilience.models.crowd.evidence import Dense, Lifted
from consilience.models.crowd.member import crowd_member
from consilience.models.crowd.votes import Votes

__all__ = ["Channel", "CrowdSettings", "Dense", "Lifted", "Votes", "crowd_member"]
