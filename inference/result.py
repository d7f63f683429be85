"""`Fit`: what inference found, with what was run, as a user holds it. Tables of the member are methods of it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from consilience.data.codes import named
from consilience.data.contract import Contract
from consilience.errors import TooLarge, UnsupportedRequest, meant, no_such
from consilience.inference.fit_tables import FitTable
from consilience.inference.generic import GenericRun
from consilience.inference.limits import MOST_NUMBERS
from consilience.inference.loop import Progress
from consilience.inference.results import Result
from consilience.inference.stored_priors import describe_priors, unknown_priors
from consilience.models.interface import Account, Measure, Model, Table
from consilience.models.intervals import LEVEL
from consilience.models.keys import stream_key
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth import Truth
from consilience.models.truth.against_gold import headline
from consilience.notebook import html
from consilience.notes import Level, Note

if TYPE_CHECKING:
    import pandas

    from consilience.inference.posterior import Worst

# Numbers of streams of random keys: the same seed gives inference, truth, exported draws, k-hat and the
# start of chains their own.
STREAMS = {name: number for number, name in enumerate(("inference", "truth", "export", "weights", "start"))}


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What inference found, with what was run. Tables of the member are methods: ``fit.labels()``.

    Parameters
    ----------
    member : Model
        The model that was fitted.
    resolved : Resolved
        Data, settings and priors.
    method, reason : str
        How, and why so.
    seed, draws : int
        Of the run; ``draws`` per chain.
    posterior : Posterior
        `Closed`, `Draws` or `Estimate`; see `consilience.models.posterior`.
    result : Result
        How the run ended.
    run : GenericRun, optional
        The driver's own account, without the draws; None for an exact posterior and after loading.
    said : tuple[Note, ...], optional
        What a loaded fit said when it was fitted, with priors that it may know in words only now.
    attributes : dict[str, Any], optional
        Limits of the run (chains, warm-up, …), versions, data hash, seconds, worst diagnostics.
    engine, folder : engine and str, optional
        What went through the data in the place of arrays, and keeps large tables; and where the fit was read from.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> fit = cs.fit("dirichlet", labels)
    >>> fit.method, fit.draws
    ('exact', 1000)
    >>> fit.labels()["label"].tolist()
    ['no', 'yes']
    >>> fit.samples(draws=5)["plausibility"].shape  # chain, draw, item, label
    (1, 5, 2, 2)
    """

    member: Model
    resolved: Resolved
    method: str
    reason: str
    seed: int
    draws: int
    posterior: Posterior
    result: Result
    run: GenericRun | None = None
    said: tuple[Note, ...] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    engine: Any = None
    folder: str = ""

    def __post_init__(self) -> None:
        for table in self.member.tables:
            self.__dict__[table.name] = FitTable(self, table)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the engine; and what is bound to the fit or kept of it, such as the truth, which is made anew."""
        bound = {"engine", *(table.name for table in self.member.tables)}
        bound |= {name for name, own in vars(type(self)).items() if isinstance(own, cached_property)}
        return {name: value for name, value in self.__dict__.items() if name not in bound}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, engine=None)
        self.__post_init__()

    # ---- what was fitted

    @property
    def data(self) -> Contract:
        """The data."""
        return self.resolved.data

    @property
    def priors(self) -> Any:
        """The priors; None after loading where a file cannot hold them."""
        return self.resolved.given

    @property
    def options(self) -> dict[str, Any]:
        """The member's settings by name."""
        return self.resolved.settings.as_dict()

    @property
    def tables(self) -> tuple[Table | Measure, ...]:
        """What the fit answers, with columns and help."""
        return self.member.tables

    @property
    def elbo(self) -> np.ndarray | None:
        """The objective at every step, of methods that have one."""
        return self.run.elbo if self.run else self.posterior.hidden.get("evidence")

    @property
    def unknown_priors(self) -> list[str]:
        """Fields of the priors that a loaded fit knows in words only: functions and distributions of the user's own."""
        if self.priors is not None or self.member.priors is None:
            return []
        return unknown_priors({}, self.attributes.get("priors", ""), self.member.priors)

    # ---- the posterior

    @property
    def has_draws(self) -> bool:
        """Whether the posterior is draws, which can be summarised: no closed form, and no estimate such as EM's."""
        return self.posterior.form == "draws"

    @cached_property
    def truth(self) -> Truth:
        """Draws of what the model calls true; the same at every use.

        Raises
        ------
        UnsupportedRequest : the run ended before its first draw, or other processes hold more of the data.
        """
        if not self.data.is_whole:
            text = "this process has its own items alone; save the fit, and load it with load_fit in one process"
            raise UnsupportedRequest(text)
        return self._truth

    @cached_property
    def _truth(self) -> Truth:
        """The truth of the items that this process has."""
        self._require_draws()
        key = stream_key(self.seed, STREAMS["truth"])
        truth = self.member.truth(self.posterior, self.resolved, key=key, num_draws=self.draws)
        truth.num_chains = self.posterior.num_chains
        return truth.bound_to(self.data)

    @property
    def signal(self) -> Any:
        """Whether the annotators agree beyond chance: the gate of crowd models, a `Signal`.

        Raises
        ------
        UnsupportedRequest : the model is none of a crowd.
        """
        return self._of_crowd("signal", self.truth.signal)

    @property
    def dependence(self) -> Any:
        """How much the errors of one item's annotators are taken to hang together, and who says so: a `Dependence`.

        Raises
        ------
        UnsupportedRequest : the model is none of a crowd.
        """
        return self._of_crowd("dependence", self.truth.dependence)

    def _of_crowd(self, name: str, found: Any) -> Any:
        if found is None:
            raise UnsupportedRequest(f"'{self.member.name}' has no {name}, which is of models of annotators")
        return found

    @property
    def message(self) -> str:
        """One sentence of the driver where there is something to say of the run, else empty."""
        return "" if self.run is None else self.run.message

    @property
    def is_empty(self) -> bool:
        """Whether the run ended before its first draw."""
        return self.has_draws and any(0 in np.shape(draws)[:2] for draws in self.posterior.chains.values())

    @property
    def hidden_of_items(self) -> dict[str, np.ndarray]:
        """What the posterior knows of the items beside its sites, such as probabilities of their labels, by name."""
        axes = self.member.sites.hidden
        return {name: np.asarray(own) for name, own in self.posterior.hidden.items() if self.data.unit in axes[name]}

    def _require_draws(self) -> None:
        if not self.is_empty:
            return
        if self.result is Result.nonfinite:
            why = "the run met numbers that are not finite before its first draw; look at its priors and its data"
        else:
            why = "the run ended before its first draw; go on with it, or give it more time"
        raise UnsupportedRequest(why)

    def samples(self, draws: int | None = None) -> dict[str, np.ndarray]:
        """Return draws of the model's sites, each ``(chain, draw, …)``.

        Parameters
        ----------
        draws : int, optional
            How many to make of a posterior in closed form; those of the fit by default. Stored draws are all returned;
            an estimate is one draw.

        Raises
        ------
        TooLarge : the draws of a site would not fit.
        UnsupportedRequest : the member has no sites to draw.
        """
        if self.has_draws:
            return dict(self.posterior.chains)
        if not self.posterior.sites:
            raise UnsupportedRequest(f"'{self.member.name}' has no draws of its sites; use fit.posterior")
        number = 1 if self.posterior.form == "estimate" else draws or self.draws
        key = stream_key(self.seed, STREAMS["export"])
        shapes = jax.eval_shape(lambda key: self.posterior.draws(number, key=key), key)
        largest = max(int(np.prod(shape.shape)) for shape in shapes.values())
        if largest > MOST_NUMBERS:
            raise TooLarge(
                f"{number} draws of all sites would hold {largest:,} numbers; ask for fewer draws, "
                "or use the tables and scores, which never build them"
            )
        return {site: np.asarray(values)[None] for site, values in self.posterior.draws(number, key=key).items()}

    def summary(self, draws: int | None = None, interval: float = LEVEL) -> pandas.DataFrame:
        """Return a data frame with mean, sd, interval, R-hat, ESS and MCSE of every scalar quantity."""
        return self._summary.copy() if (draws, interval) == (None, LEVEL) else self._summarised(draws, interval)

    @cached_property
    def _summary(self) -> Any:
        """The summary of many quantities takes longer than some runs."""
        return self._summarised(None, LEVEL)

    def _summarised(self, draws: int | None, interval: float) -> Any:
        from consilience.inference import posterior

        return posterior.summarise(**self._quantities(draws), interval=interval)

    def _quantities(self, draws: int | None = None) -> dict[str, Any]:
        """Return what summaries and diagnostics are about, with the names of it."""
        from consilience.inference import posterior

        samples = self.samples(draws)
        if self.member.sites.summarised is not None:
            samples = self.member.sites.summarised(samples, self.resolved)
        coords = self.data.coordinates()
        return {"samples": samples, "dims": posterior.named_dims(self.member, samples, coords), "coords": coords}

    @cached_property
    def worst(self) -> Worst | None:
        """The worst diagnostics of the draws, of at most 1,000 quantities; None of a posterior without draws."""
        from consilience.inference import posterior

        return posterior.worst_diagnostics(**self._quantities()) if self.has_draws else None

    def to_arviz(self, draws: int | None = None, *, log_likelihood: bool = False) -> Any:
        """Return the posterior as ArviZ has it, with the user's own ids as coordinates.

        Parameters
        ----------
        draws : int, optional
            See `samples`.
        log_likelihood : bool, default False
            Whether to add the group of that name for ``arviz.loo``: log probabilities of all that was said of an item,
            its truth summed out, ``(chain, draw, item)``. What is left out at a time is an item.

        Raises
        ------
        TooLarge : the draws of a site, or of the log likelihood, would not fit.
        UnsupportedRequest : the log likelihood of an item is unknown, or the draws are not those of the posterior.
        """
        from consilience.inference import posterior

        samples, coords = self.samples(draws), self.data.coordinates()
        groups: dict[str, Any] = {"posterior": samples}
        dims = posterior.named_dims(self.member, samples, coords)
        if self.run is not None and self.run.stats:
            groups["sample_stats"] = self.run.stats
        if log_likelihood:
            if not self.has_draws:
                why = f"draws of {self.method} are not those of the posterior, as leaving out needs"
                raise UnsupportedRequest(f"{why}; fit with method='gibbs' or 'nuts'")
            groups["log_likelihood"] = {"of_item": posterior.item_log_likelihoods(self.member, self.resolved, samples)}
            dims = {**dims, "of_item": ("item",)}
        return posterior.to_arviz(groups, dims=dims, coords=coords, attrs=self.describe())

    def k_hat(self) -> float | None:
        """Return the Pareto k-hat of a fit by CAVI, however large; None where its factors are not all that is unknown.

        Above 0.7 the approximation cannot stand in for the posterior, as its intervals would have to. It is computed
        when it is first asked for; from then on `findings` and `describe` say it, and a saved fit has it.

        Raises
        ------
        UnsupportedRequest : the fit is by another method, the density does not know what was fitted, or other
            processes hold more of the data.
        """
        if self.method != "cavi":
            raise UnsupportedRequest(f"k-hat is about an approximation; this fit is by {self.method}")
        return self._weighed(None)

    @property
    def known_k_hat(self) -> float | None:
        """The Pareto k-hat of an approximation, where it was computed; None else."""
        return self.__dict__.get("_k_hat", None if self.run is None else self.run.k_hat)

    def _weighed(self, most_numbers: int | None) -> float | None:
        """Return k-hat of the approximation, computed once; None also of more annotations or parameters than that."""
        from consilience.inference.approximation import approximation_k_hat

        if not self.data.is_whole:
            raise UnsupportedRequest("k-hat is about all items; save the fit, and load it with load_fit in one process")
        if self.known_k_hat is None:
            key = stream_key(self.seed, STREAMS["weights"])
            self.__dict__["_k_hat"] = approximation_k_hat(
                self.member, self.posterior, self.resolved, key=key, most_numbers=most_numbers
            )
        return self.known_k_hat

    # ---- tables

    def table(self, name: str, **choice: Any) -> Any:
        """Return one of the member's tables as a data frame, with the user's own ids, or as the engine keeps it.

        Parameters
        ----------
        name : str
            Of the table.
        choice : object
            Which part of it, where the member offers one, such as ``annotators`` by their codes.
        """
        kept = None if self.engine is None or name in self.member.measured_tables else self.member.table(name).kept
        import pandas

        own = self.posterior, self.resolved, self.truth if kept else None
        return kept(self.engine, *own) if kept else pandas.DataFrame(self.table_columns(name, **choice))

    def table_columns(self, name: str, *, codes: bool = False, **choice: Any) -> dict[str, np.ndarray]:
        """Return a table as `table` does, as arrays, which takes a fraction of the time where rows are many.

        Parameters
        ----------
        name, choice : str
            As in `table`.
        codes : bool, default False
            Whether the columns of ids hold codes.

        Raises
        ------
        UnknownName : the member has no such table.
        """
        if name in self.member.measured_tables:
            frame = self.measure(name, **choice)
            return {column: frame[column].to_numpy() for column in frame}
        table = self.member.table(name)
        # Rows of its own items a process can make; all else is of the items of all.
        truth = self._truth if table.columns[0].codes == self.data.unit else self.truth
        columns = table.make(self.posterior, self.resolved, truth, **choice)
        if codes:
            return columns
        ids = {column.name: truth.ids.get(column.codes) for column in table.columns if column.codes}
        return {column: named(values, ids.get(column)) for column, values in columns.items()}

    @cached_property
    def plot(self) -> Any:
        """Figures of the fit, each with ``ax=``: a `consilience.plots.Plots`."""
        # Named only: figures are of the face, which imports this file.
        return importlib.import_module("consilience.plots").Plots(self)

    def measure(self, name: str, *arguments: Any, **choice: Any) -> Any:
        """Return what the fit answers under a name beside its tables, such as ``num_entities``.

        Parameters
        ----------
        name : str
            Of the measure.
        arguments, choice : object
            What it takes.

        Raises
        ------
        UnknownName : the member has no such measure.
        """
        if name not in self.member.measure_names:
            known = self.member.measure_names
            raise no_such(f"'{self.member.name}' has no '{name}'", name, known, f"it has {', '.join(known)}")
        return getattr(self, name)(*arguments, **choice)

    if not TYPE_CHECKING:  # or a checker would take any name for a table

        def __getattr__(self, name: str) -> Any:
            member = self.__dict__.get("member")
            if member is None or name.startswith("__"):
                raise AttributeError(name)
            if hasattr(type(self), name):  # a property that failed itself; its own error says why
                return object.__getattribute__(self, name)
            known = [table.name for table in member.tables]
            near = meant(name, [*known, *dir(type(self))])
            hint = f"{near} Its" if near else "its"
            raise AttributeError(
                f"a fit of '{member.name}' has no attribute '{name}'; {hint} tables are {', '.join(known)}"
            )

    # ---- what there is to say

    @cached_property
    def headline(self) -> str:
        """What to read first: how certain the labels are, and how many gold labels they hit; empty of other fits.

        >>> import consilience as cs
        >>> cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0], [1, 1]])).headline
        'certainty 0.750'
        """
        speaks = self.data.is_whole and self._has_truth and "calibration" in self.member.measured_tables
        return headline(cast(Any, self.truth), self.resolved) if speaks else ""

    @property
    def _has_truth(self) -> bool:
        """Whether there are probabilities to speak of: a run that broke down, or never came to a draw, has none."""
        return self.result is not Result.nonfinite and not self.is_empty

    def findings(self) -> list[Note]:
        """Return all that there is to say of the fit, errors first.

        By the member, of its certainty beside gold labels that it did not use, of the run, and of the approximation: of
        that only where `k_hat` was asked for.
        """
        return [*self._findings, *(note for note in self._of_approximation() if note not in self._findings)]

    def _of_approximation(self) -> list[Note]:
        """Return what a large k-hat of CAVI means; nothing where it is not known."""
        from consilience.inference import posterior

        if self.method != "cavi" or not self.data.is_whole:
            return []
        return posterior.approximation_notes(self.known_k_hat, "gibbs" if "gibbs" in self.member.methods else "nuts")

    @cached_property
    def _findings(self) -> tuple[Note, ...]:
        if self.said is not None:
            return self.said
        from consilience.inference import posterior

        found: list[Note] = []
        if not self.data.is_whole:
            text = "other processes have the other items; the fit that load_fit joins says what there is to say of all"
            found.append(Note(Level.note, text))
        account = Account(
            posterior=self.posterior, resolved=self.resolved, method=self.method, make_truth=lambda: self.truth
        )
        if self.member.says is not None and self.data.is_whole and not self.is_empty:
            found += self.member.says(account)
        if self._has_truth and self.data.is_whole:
            for table in self.member.tables:
                if isinstance(table, Measure) and table.says is not None:
                    found += table.says(account)
        if self.run is not None:
            apart, least = "starts" in self.attributes, float(posterior.POOR_ESS)
            if apart and self.worst is not None:  # such chains are few and short, as each costs much
                least = min(least, self.worst.draws / 2)
            for note in posterior.poor_diagnostics(self.worst, self.run, least=least):
                grave = apart and note.level > Level.note  # chains that start apart on purpose may not meet
                found.append(dataclasses.replace(note, level=Level.note, title=note.heading) if grave else note)
        return tuple(sorted(found, key=lambda note: -note.level))

    def diagnostics(self) -> list[str]:
        """Return the warnings and errors of the fit, in words; empty when there are none. `findings` has notes too.

        Of CAVI with up to 20,000 annotations and parameters also what its k-hat means where it is large, which no other
        look computes. That is no fault of the run: independent factors for many annotators always have a large one.
        """
        found = [note.words() for note in self._findings if note.level > Level.note]
        if self.method == "cavi" and self.result.complete:
            from consilience.inference.approximation import MOST_NUMBERS

            with contextlib.suppress(UnsupportedRequest):
                self._weighed(MOST_NUMBERS)
        return found + [note.words() for note in self._of_approximation()]

    def describe(self) -> dict[str, Any]:
        """Return what was run: model, method and why, settings, priors, seed, result, versions, data hash, seconds."""
        attributes = {name: value for name, value in self.attributes.items() if name != "cleaning"}  # a table by itself
        return {
            "model": self.member.name, "method": self.method, "reason": self.reason, "result": str(self.result),
            **{f"option_{name}": value for name, value in self.options.items()},
            "priors": describe_priors(self.priors), "seed": self.seed, "draws": self.draws, **attributes,
            **({} if self.known_k_hat is None or self.method != "cavi" else {"k_hat": round(self.known_k_hat, 3)}),
            **({"notes": "; ".join(note.words() for note in said)} if (said := self.findings()) else {}),
        }  # fmt: skip

    def update(self, new_annotations: Any, *, duplicates: str = "keep", progress: Progress = None) -> Fit:
        """Return a fit of these annotations and new ones together; this one stays as it is.

        Model, priors, settings, method, limits and seed are those of this fit. Coordinate ascent and EM start at the
        labels that it ended with, new items at their votes, and go on until they stand still; the chains of Gibbs
        sampling start at their last draws, with a warm-up of 50. Other methods start afresh, as all do where there is a
        new label. What comes out is what a fit of all annotations finds, up to where either stops; but an
        ascent stays on the hill on which it starts, and the likelihood that EM climbs, which knows no prior, may have
        several. The gain is that nobody has to put tables together, and sweeps of fits that take many. A method that
        ``auto`` chose by the data is chosen anew.

        Parameters
        ----------
        new_annotations : Annotations or source of them
            `Annotations`, or a path, a data frame, a dict of columns or a list of rows. Items, annotators and labels
            are known by their ids; unknown ones are added.
        duplicates : str, default "keep"
            What to do when an annotator labels an item again: "keep" counts every row, "first" keeps the first, "error"
            refuses.
        progress : bool or callable, optional
            As in `fit`.

        Raises
        ------
        UnsupportedRequest : the data of the fit are no annotations, or a loaded fit knows its priors in words only.
        InputError : the new annotations cannot be read, or contradict what is known of items and annotators.

        Examples
        --------
        >>> import consilience as cs
        >>> fit = cs.fit("majority-vote", {"item": ["a", "a"], "annotator": ["Ann", "Bob"], "label": ["no", "yes"]})
        >>> later = fit.update({"item": ["a", "b"], "annotator": ["Cho", "Cho"], "label": ["yes", "no"]})
        >>> later.labels()["label"].tolist()
        ['yes', 'no']
        >>> later.data
        Annotations(annotations=4, items=2, annotators=3, labels=2)
        """
        # Named only, as measures are: what updates a fit makes one, by `fit`, which imports this file.
        updating = importlib.import_module("consilience.inference.updating")
        return cast(Fit, updating.updated(self, new_annotations, duplicates=duplicates, progress=progress))

    def refitted(self, data: Contract, **limits: int) -> Fit:
        """Return a fit of other data by the same model, priors, settings, method, limits and seed; it starts afresh.

        Parameters
        ----------
        data : Contract
            Of the kind that the model takes.
        limits : int
            Other ``draws``, ``chains`` or ``warmup`` where the method has such.
        """
        return cast(Fit, importlib.import_module("consilience.inference.updating").refitted(self, data, **limits))

    def save(self, path: Any, *, force: bool = False) -> None:
        """Save to a folder; ``force`` replaces another fit there. See `consilience.inference.saved.save`."""
        from consilience.inference.saved import save

        save(self, path, force=force)

    def __repr__(self) -> str:
        """Return five lines at most: errors first, then what to read first, what it is, and what else there is."""
        said = self.findings()
        errors = [f"error: {note.words()}" for note in said if note.level is Level.error]
        more = [f"… and {len(errors) - 1} more"] if len(errors) > 1 else []
        counts = [(name, sum(note.level.name == name for note in said)) for name in ("warning", "note")]
        listed = " and ".join(f"{number} {name}{'s' * (number > 1)}" for name, number in counts if number)
        return "\n".join([*errors[:1], *more, *self._lines, *([f"{listed}: fit.findings()"] if listed else [])])

    @property
    def _lines(self) -> list[str]:
        """What to read first, and what the fit is."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        line = f"Fit({self.member.name} by {self.method}{options}; {self.data!r}; {self.result})"
        return [self.headline, line] if self.headline else [line]

    def _repr_html_(self) -> str:
        said = [f"{note.level.name}: {note.words()}" for note in self.findings()]
        first, *others = [*self.member.table_names, *self.member.measured_tables]
        columns = self.table_columns(first) if self._has_truth and self.data.is_whole and self.engine is None else None
        listed = f"Tables: {', '.join(f'fit.{name}()' for name in (first, *others))}"
        return html("\n".join(self._lines), said, columns, listed)
