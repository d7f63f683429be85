"""How good is it: functions of draws of the truth, whoever made them.

| file | what it holds |
|---|---|
| `certainties` | annotation certainty, expected risk |
| `another_label` | which items are most worth another label |
| `metrics`, `rank_distances` | pure functions of one draw and one prediction |
| `adjustment` | lifts any of them over draws and items |
| `comparison` | the leaderboard: what the truth and the finite set of items leave open |
| `annotator_scores`, `leave_one_out`, `rank_overlap` | how annotators agree with each other |
| `partitions`, `partition_scores` | which records are of one entity: scores of many draws at once, and lifted |
| `scores` | what every evaluation returns |
"""
