"""Linkage by Gibbs sampling on a wide graph of candidates: links and all hyperparameters, for intervals that hold.

| file | what it holds |
|---|---|
| `problem` | records, the wide graph, the priors |
| `links`, `record_sweep` | links drawn, record by record, in machine code |
| `hyperparameters` | what is drawn given the links |
| `error_classes` | the same with errors that come together |
| `sampler` | the two together |
| `truth` | who is together in the draws |
| `outside`, `predictive` | links that the graph leaves out; whether the model holds |
| `error_class_records` | what it would look like if errors came together |
"""
