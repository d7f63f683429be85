"""What the commands of coreference do: read, call the library, print.

Every function takes the parsed arguments. Nothing is imported before it is needed, so that a wrong word is answered at
once.
"""

from __future__ import annotations

from argparse import Namespace as Arguments
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilience.commands.files import inputs_of, write_csv
from consilience.commands.linkage import are_entities
from consilience.commands.linkage import score as score_entities
from consilience.commands.reading import load, refuse_views
from consilience.errors import InputError, InputProblem, UnsupportedRequest, WrongKind
from consilience.output import check_folder, check_output
from consilience.printing import counted, json_text, rows_of, table_text

if TYPE_CHECKING:
    from consilience.data.conll import Chains
    from consilience.evaluation.silver import SilverChains
    from consilience.inference.fitting import Fit

SCENARIOS = ("synthetic-uniform", "synthetic-sparse", "profiles-uniform", "profiles-sparse")
"""Names of `consilience.models.mpa.scenarios`, which imports JAX."""

_METRICS = ("conll", "mentions", "muc", "b3", "ceafe", "ceafm", "blanc", "lea", "non-referring")


def are_chains(sources: Sequence[str], metrics: Sequence[str]) -> bool:
    """Return whether predictions are chains, which a score of coreference or the names of CoNLL files say."""
    named = any(metric.removesuffix("-recall").removesuffix("-precision") in _METRICS for metric in metrics)
    return named or any(_is_conll(source) for source in sources)


def _is_conll(source: str) -> bool:
    from consilience.data.conll_text import ENDINGS_IN_FOLDERS

    return source.lower().removesuffix(".gz").endswith(ENDINGS_IN_FOLDERS) or Path(source).is_dir()


def read_key(source: str) -> Chains:
    """Read a key: a CoNLL file, a folder of them, or public data by name.

    Raises
    ------
    UnsupportedRequest : for public data of another kind.
    """
    from consilience import data
    from consilience.data.conll import read_conll

    if Path(source).exists() or source not in data.names():
        return read_conll(source)
    found = data.describe(source).contract
    if found != "Chains":
        fitting = ", ".join(name for name in data.names() if data.describe(name).contract == "Chains")
        raise WrongKind(f"a key holds Chains, and {source} holds {found}; there is {fitting}")
    return data.load(source)


def simulate(arguments: Arguments) -> None:
    """Write annotations of the mentions of a key, as a crowd would give them."""
    target = arguments.output
    key = read_key(arguments.key)
    from consilience.data.mentions import MENTION_TYPES
    from consilience.data.mentions_writer import write_mentions
    from consilience.models.mpa.scenarios import simulate_mentions

    mentions = simulate_mentions(key, arguments.scenario, profiles=arguments.profiles, seed=arguments.seed)
    write_mentions(mentions, target, force=arguments.force)
    new = float((mentions.gold_type == MENTION_TYPES.index("DN")).mean())
    described = {
        "file": target, "key": arguments.key, "scenario": arguments.scenario, "seed": arguments.seed,
        **mentions.counts, "gold_share_of_DN": new,
    }  # fmt: skip
    if arguments.json:
        print(json_text(described))
        return
    sizes = ", ".join(counted(size, name) for name, size in mentions.counts.items())
    of_key = ", ".join(counted(key.counts[name], name) for name in ("mentions", "documents"))
    print(f"read     {arguments.key}: {of_key}")
    print(f"made     {arguments.scenario}, seed {arguments.seed}: {sizes}")
    print(f"gold     {new:.1%} of the mentions are new (DN)")
    print(f"saved    {target}\n\nnext     consilience fit mpa {target} -o run")


def score(arguments: Arguments) -> None:
    """Print the scores of a response against a key; of tables, those of the entities of records.

    Raises
    ------
    UnsupportedRequest : flags have no meaning for chains, or for tables.
    WrongKind : public data hold no chains.
    OutputRefused : a file must not be written.
    """
    if are_entities(arguments.key, arguments.response):
        if arguments.singletons is not None or arguments.documents:
            raise UnsupportedRequest("--singletons and --documents say something of chains; these are tables")
        score_entities(arguments)
        return
    if arguments.columns:
        raise UnsupportedRequest("--columns names columns of tables; chains have none")
    if unfit := [name for name in ("missing", "unknown") if getattr(arguments, name) != "error"]:
        raise UnsupportedRequest(f"--{unfit[0]} is for tables of records; chains are compared mention by mention")
    singletons = arguments.singletons or "include"
    key, response = read_key(arguments.key), read_key(arguments.response)
    from consilience.evaluation.coreference_scores import score_coreference

    found = score_coreference(key, response, singletons=singletons == "include")
    documents = rows_of(found.by_document)
    write_csv(found.by_document, arguments)
    if arguments.json:
        described = {"key": arguments.key, "response": arguments.response, "singletons": singletons}
        rows = documents if arguments.documents else rows_of(found.table)
        print(json_text({**described, "documents" if arguments.documents else "scores": rows}))
    elif arguments.documents:
        print(table_text(documents, hint="use --json or --csv FILE"))
    else:
        print(found)


def chains(arguments: Arguments) -> None:
    """Print the chains of a fit of mentions, or write them as CoNLL files.

    Raises
    ------
    UnsupportedRequest : flags contradict each other, or there are fewer draws than are asked for.
    InputError : there is no such template.
    OutputRefused : a file must not be written.
    """
    refuse_views(arguments, "chains")
    files = _files_of_chains(arguments) if arguments.to == "conll" else None
    fitted, _ = load(arguments)
    from consilience.evaluation.silver import silver_chains

    found = silver_chains(fitted)
    if files is not None:
        _write_chains(arguments, fitted, found, *files)
        return
    unfit = [f"--{name}" for name in ("template", "draws", "output") if getattr(arguments, name)]
    if unfit:
        raise UnsupportedRequest(f"{', '.join(unfit)} belongs to files; give --to conll, or --csv FILE for a table")
    rows = rows_of(found.table)
    write_csv(found.table, arguments)
    if arguments.json:
        print(json_text(rows))
        return
    print(f"{found}\n{table_text(rows, hint='use --json or --csv FILE')}")


def _files_of_chains(arguments: Arguments) -> tuple[str | None, list[Path]]:
    """Return the template, and what is to be written: files, or folders where the template is one."""
    if arguments.json or arguments.csv:
        raise UnsupportedRequest("--to conll writes files; leave out --json and --csv")
    template = None if arguments.template is None else _template(arguments.template)
    into_folder = template is not None and Path(template).is_dir()
    usual = "chains" if into_folder else "chains.conll"
    target = Path(usual if arguments.output is None else arguments.output)
    of_draws = [target.with_name(_numbered(target, number)) for number in range(1, (arguments.draws or 0) + 1)]
    for path in (target, *of_draws):
        if into_folder:
            check_folder(path)
        else:
            check_output(path, force=arguments.force, inputs=inputs_of(arguments))
    return template, [target, *of_draws]


def _write_chains(
    arguments: Arguments, fitted: Fit, found: SilverChains, template: str | None, files: list[Path]
) -> None:
    """Write the most likely chains, and drawn ones beside them."""
    from consilience.data.conll_writer import write_conll
    from consilience.evaluation.silver import silver_chains

    if arguments.draws is not None and not 1 <= arguments.draws <= fitted.draws:
        raise UnsupportedRequest(f"--draws is {arguments.draws}; the fit has {fitted.draws:,} draws, and 1 or more go")
    target, *of_draws = files
    write_conll(found, target, template=template, crossing="drop", force=arguments.force)
    print(f"{found}\nwritten  {target}")
    for number, path in enumerate(of_draws):
        write_conll(silver_chains(fitted, draw=number), path, template=template, crossing="drop", force=arguments.force)
    if of_draws:
        print(f"         {of_draws[0]} … {of_draws[-1].name}, one draw of the posterior each")


def _template(source: str) -> str:
    """Return the file or folder of a template, which may be public data by name."""
    if Path(source).exists():
        return source
    from consilience import data

    if source not in data.names() or data.describe(source).contract != "Chains":
        raise InputError(InputProblem("there is no such file or folder", "check the path of --template", source))
    return str(data.get(source) / Path(data.describe(source).files[0].path).parent)


def _numbered(target: Path, number: int) -> str:
    """Return the name of a file with a number before its endings."""
    stem, dot, endings = target.name.partition(".")
    return f"{stem}-{number:03}{dot}{endings}"
