"""How we compute: `fitting` chooses a method and records it; one driver a method; `loop` under all of them.

| file | what it holds |
|---|---|
| `fitting` | `fit`, the one verb, and `Fit`, what it returns |
| `gibbs`, `ascent` | the drivers of hand-written samplers, and of EM |
| `nuts`, `svi` | the generic drivers, for any NumPyro function |
| `generic`, `loop`, `results` | what drivers share: checks of a model, the chunked host loop, result codes |
| `posterior`, `diagnostics` | summaries, and the only file that knows ArviZ |
| `saved` | fits on disk |
"""
