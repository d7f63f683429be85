"""The gallery of figures: what each draws, and the lines that draw it.

A name of `consilience.figures.__all__` without an entry is an error. `page` runs the entries, keeps a
picture of each, and returns the page that shows them.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from consilience import figures
from consilience.data.samples import write_samples
from consilience.drawing import GRID, ON_DARK, PALETTE
from consilience.pages.vectors import svg_of

TITLES = {
    "figures": "Certainty, scores and plausibilities",
    "annotator_figures": "Annotators",
    "agreement_figures": "Agreement",
    "linkage_figures": "Linkage",
    "views_figures": "Views of experts",
}

# The colours of the pictures, which are part of the page: light and dark.
LOOKS = {":root": PALETTE | {"grid": GRID}, '[data-theme="dark"]': ON_DARK | {"grid": "#4a4a4a"}}
STYLE = " ".join(
    f"{which} {{ {'; '.join(f'--{name}: {colour}' for name, colour in colours.items())} }}"
    for which, colours in LOOKS.items()
)

SETUP = """\
import numpy as np
import pandas
import consilience as cs
from consilience import figures

labels = cs.example("labels.csv")
fit = cs.fit("dawid-skene", labels)
found = cs.agreement(labels)
systems = {"a": cs.example("system_a.csv"), "b": cs.example("system_b.csv")}
ranking = cs.compare(fit, systems)
scores = {name: cs.evaluate(fit, one, "accuracy") for name, one in systems.items()}
cases = cs.load("stutz-2023-cases")
plausible = cs.fit("prirn", cases, reliability=10)
records = cs.read_records(["clinic.csv", "register.csv"], id="id")
linked = cs.fit("block-linkage", records, restriction="across")
experts = cs.example("answers.csv")
views = cs.fit("expert-views", experts, clusters=3, method="cavi", seed=1)
"""

# Figure -> (a sentence of what it shows, the lines that draw it). The last line makes the axes.
ENTRIES = {
    "figures.sorted_certainty": (
        "How certain the label of each item is, from the least certain to the most.",
        "figures.sorted_certainty(cs.certainty(fit))",
    ),
    "figures.certainty_histogram": (
        "How many items have each certainty.", "figures.certainty_histogram(cs.certainty(fit))",
    ),
    "figures.item_scores": (
        "The score of each item, averaged over draws of the truth, one curve a system.", "figures.item_scores(scores)",
    ),
    "figures.score_histogram": (
        "How the score of a data set varies with the unknown truth.", "figures.score_histogram(scores)",
    ),
    "figures.leaderboard": (
        "The systems of a comparison, best first, with their intervals.", "figures.leaderboard(ranking)",
    ),
    "figures.beats_matrix": (
        "How probably one system beats another, for each pair.", "figures.beats_matrix(ranking)",
    ),
    "figures.certainty_by_agreement": (
        "The certainty of each item against the agreement of its annotators.",
        "figures.certainty_by_agreement(cs.certainty(fit), cs.annotator_agreement(labels))",
    ),
    "figures.plausibility_bars": (
        "How plausible each class is for one item, with its uncertainty.",
        "figures.plausibility_bars(plausible, cases.items[0])",
    ),
    "figures.simplex": (
        "Plausibilities of three classes as points of their triangle.",
        "draws = np.random.default_rng(0).dirichlet([4, 2, 1], 300)\n"
        'figures.simplex(draws, draws.mean(axis=0), ["cat", "dog", "fox"])',
    ),
    "figures.certainty_by_reliability": (
        "How certainty rises if you trust each annotator more.",
        'table = cs.sweep("dirichlet", labels, reliability=(1, 2, 4))\nfigures.certainty_by_reliability(table)',
    ),
    "figures.expected_risk_histogram": (
        "The expected risk of the items, if each class has a numeric risk.",
        'risk = cs.read_class_map({"class": ["cat", "dog", "fox"], "group": [0, 1, 2]})\n'
        "figures.expected_risk_histogram(cs.expected_risk(fit, risk))",
    ),
    "figures.reliability_curve": (
        "How often labels are right, by the probability that the model gives them.",
        'figures.reliability_curve(fit.calibration(), "Labels", "stated probability", "share right")',
    ),
    "figures.annotator_reliability": (
        "The accuracy of each annotator with its interval.",
        'figures.annotator_reliability(fit.annotators(), "Accuracy", chance=1 / 3)',
    ),
    "figures.probability_matrix": (
        "The confusion matrix of one annotator: paler cells are less certain.",
        'table = fit.confusion()\nfigures.probability_matrix(table[table["annotator"] == "lee"], "lee")',
    ),
    "figures.sensitivity_scatter": (
        "The sensitivity of each annotator to two classes.",
        'table = cs.fit("mpa", labels).annotators()\n'
        'figures.sensitivity_scatter(table, "cat", "dog")',
    ),
    "figures.agreement_by_name": (
        "Agreement with intervals, for weighting schemes, labels or annotators.",
        'figures.agreement_by_name(found.labels(), "label", "agreement", "Agreement by label")',
    ),
    "figures.annotator_matrix": (
        "How often every two annotators agree.", "figures.annotator_matrix(found.pairs())",
    ),
    "figures.learning_curve": (
        "Agreement as annotations arrive.", "figures.learning_curve(found.curve()[[\"num_annotations\", \"flat\"]])",
    ),
    "figures.monitoring": (
        "Agreement over items in their order, with a band that holds at all times at once.",
        "figures.monitoring(found.monitor())",
    ),
    "figures.predictive_check": (
        "The agreement that the model expects, and the one that was observed.",
        "figures.predictive_check(cs.agreement(fit))",
    ),
    "figures.entity_histogram": (
        "The posterior of the number of entities.", "figures.entity_histogram(cs.num_entities(linked))",
    ),
    "figures.weights_of_fields": (
        "What agreement and difference in each field add to the log odds of a pair.",
        "figures.weights_of_fields(linked.weights())",
    ),
    "figures.explained_pair": (
        "How the log odds of one pair come about, field by field.",
        'figures.explained_pair(linked.explain("c41", "r1"))',
    ),
    "figures.unlinkable_records": (
        "The share of records that carry too little to be linked.",
        "figures.unlinkable_records(linked.unlinkable())",
    ),
    "figures.threshold_curves": (
        "Expected precision and recall of the pairs above each threshold.",
        "figures.threshold_curves(linked.thresholds())",
    ),
    "figures.calibration_of_pairs": (
        "How often pairs are one entity, by the probability that the model gives them.",
        "pairs = linked.review(number=50)    # record c41 of the clinic is r1 of the register, c42 is r2, …\n"
        'pairs["answer"] = [int(int(a[1:]) - int(b[1:]) == 40) for a, b in zip(pairs["record_a"], pairs["record_b"])]\n'
        "figures.calibration_of_pairs(linked.calibration(pairs))",
    ),
    "figures.pairs_by_key": (
        "How many pairs the search for candidates compares, by the size of the groups that share a key.",
        "figures.pairs_by_key(linked.candidates())",
    ),
    "figures.expert_views": (
        "How probably each expert has each view.",
        "shares = pandas.DataFrame(views.truth.view_probability[:, :3], index=experts.experts)\n"
        "figures.expert_views(shares)",
    ),
    "figures.number_of_views": (
        "How probable each number of views is.", "figures.number_of_views(views.num_views())",
    ),
    "figures.expert_reliability": (
        "The sensitivity and specificity of each expert.", "figures.expert_reliability(views.experts())",
    ),
    "figures.restart_bounds": (
        "Whether restarts of the ascent agree.", "figures.restart_bounds(views.restarts())",
    ),
    "figures.view_clusters": (
        "The items of one view over two features, fainter where the cluster is less certain.",
        "probability = views.truth.cluster_probability[:, 0]\n"
        "judged = np.isin(np.arange(60), views.truth.judged)\n"
        'figures.view_clusters(experts.feature, probability, judged, ("width", "height"), "View 1")',
    ),
}  # fmt: skip


def page(folder: Path) -> str:
    """Return the page of the gallery, its pictures in a folder below ``docs``; run what draws them if one is missing.

    Raises
    ------
    LookupError : a figure has no entry, or an entry no figure.
    """
    if astray := {f"figures.{name}" for name in figures.__all__} ^ set(ENTRIES):
        raise LookupError(f"docs/gallery.py needs one entry for each public figure; look at {sorted(astray)}")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {name: folder / f"{name}.svg" for name in ENTRIES}
    if not all(one.exists() and one.stat().st_mtime > Path(__file__).stat().st_mtime for one in drawn.values()):
        draw(folder)
    parts = [
        "# Gallery", "Every figure of the library, drawn from the sample files (`consilience data example .`). Each "
        "function returns matplotlib axes. Pass `ax=` to draw into a figure of your own, and save it "
        "with `axes.figure.savefig(\"figure.pdf\")`. The lines below each picture follow these:",
        f"```python\n{SETUP}```", f"```{{raw}} html\n<style>{STYLE}</style>\n```",
    ]  # fmt: skip
    for name, (sentence, code) in ENTRIES.items():
        figure = name.removeprefix("figures.")
        home = getattr(figures, figure).__module__.rpartition(".")[2]
        if (title := f"## {TITLES[home]}") not in parts:
            parts.append(title)
        parts += [
            f"### {figure.replace('_', ' ').capitalize()}",
            f'```{{raw}} html\n<figure class="drawn">{drawn[name].read_text(encoding="utf-8")}</figure>\n```', sentence,
            f"```python\n{code}\n```",
        ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def draw(folder: Path) -> None:
    """Run the entries beside the sample files, and save what each draws."""
    names: dict[str, Any] = {}
    folder = folder.resolve()
    with tempfile.TemporaryDirectory() as samples, contextlib.chdir(samples):
        write_samples(samples)
        exec(SETUP, names)
        for number, (name, (_, code)) in enumerate(ENTRIES.items()):
            *before, last = code.splitlines()
            exec("\n".join(before), names)
            axes = eval(last, names)
            (folder / f"{name}.svg").write_text(svg_of(axes.figure, f"f{number}-").svg, encoding="utf-8")
    front = (folder / "figures.leaderboard.svg").read_text(encoding="utf-8")
    (folder / "front.html").write_text(f'<style>{STYLE}</style>\n<figure class="drawn">{front}</figure>\n', "utf-8")
