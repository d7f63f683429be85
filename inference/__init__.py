"""How we compute: `fitting` chooses a method and records it; one driver a method; `loop` under all of them.

| file | what it holds |
|---|---|
| `fitting` | `fit`, the one verb, and `Fit`, what it returns |
| `gibbs`, `ascent` | the drivers of hand-written samplers, and of EM |
| `nuts`, `svi` | the generic drivers, for any NumPyro function |
| `generic`, `loop`, `results` | what drivers share: checks of a model, the chunked host loop, result codes |
| `posterior`, `pareto` | summaries, the worst diagnostics and k-hat; the only file that knows ArviZ |
| `tempering` | parallel tempering: swaps, ladder, log evidence, round trips |
| `compilation` | compiled programs kept between runs |
| `checkpoints`, `identity` | runs that were killed or interrupted, and what must be the same to go on with one |
| `saved`, `durable`, `run_folder` | fits on disk, files that are whole or absent, what may be in the folder of a run |
"""
