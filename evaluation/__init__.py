"""How good is it: functions of draws of the truth, whoever made them.

| file | what it holds |
|---|---|
| `certainties` | annotation certainty, expected risk |
| `another_label` | which items are most worth another label |
| `engine`, `registry` | one pass over the draws, folded; metrics by name |
| `classes`, `partitions`, `chains` | the metrics of each kind of truth, and how systems are scored by them |
| `overlap` | which clusters have members in common, of records, mentions and views alike |
| `independent` | scores of independent units in closed form |
| `rank_distances` | distances of two rankings |
| `adjustment` | `evaluate` |
| `comparison` | the leaderboard: what the truth and the finite set of items leave open |
| `anchoring` | the leaderboard where some items have gold labels, or judges gave verdicts |
| `leave_one_out`, `rank_overlap` | how annotators agree with each other |
| `partition_scores`, `coreference_scores` | one partition, or one set of chains, against another; numbers of entities |
| `scores` | what every evaluation returns |
"""
