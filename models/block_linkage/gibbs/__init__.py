"""Linkage by Gibbs sampling on a wide graph of candidates: links and all hyperparameters, for intervals that hold.

| file | what it holds |
|---|---|
| `problem` | records, the wide graph, the priors |
| `sampler` | what `block_linkage.sampler` draws of the links, and `block_linkage.conjugate` given these |
| `truth` | who is together in the draws |
| `outside` | links that the graph leaves out |
"""
