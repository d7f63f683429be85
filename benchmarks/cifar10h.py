"""CIFAR-10H: how certain the labels of an image are, and what that says of the original label (Figure 3 of the paper).

Reference: D. Stutz and others, Evaluating AI systems under uncertain ground truth: a case study in dermatology,
arXiv:2307.02191 (2023); labels: Peterson and others, Human uncertainty makes classification more robust, ICCV 2019.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.recording import Recording
from consilience.data import Annotations, Predictions
from consilience.drawing import BLUE, VERMILLION, styled

RELIABILITIES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
ALPHAS = (0.01, 0.1, 1.0)
SEEDS = 5
_LEAST_CERTAIN = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--draws", type=int, default=1000, help="draws of the truth; the paper takes 1000")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    images = cs.load("cifar10h")
    record = Recording("cifar10h", "Certainty of CIFAR-10H", arguments.command, arguments.output)
    record.say(
        f"Data: {images.num_items:,} images, {images.num_labels} labels, {images.weight.sum():,.0f} annotations "
        f"({images.weight.sum() / images.num_items:.1f} an image). Dirichlet plausibilities, M = {arguments.draws} "
        "draws."
    )
    _alphas(record, images, arguments.draws)
    _reliabilities(record, images)
    fit = cs.fit("dirichlet", images, reliability=1.0, alpha=0.1, draws=arguments.draws)
    _original(record, images, fit)
    record.section("What differs from the paper, and why")
    record.say(
        "- The paper counts 178 images below 0.99 and calls them 0.2 %; 178 of 10,000 are 1.8 %. It prints neither "
        "its γ nor its α: γ = 1 with any small α gives this number. By quadrature there are 176; draws scatter around "
        "that, and 178 is one such draw.\n"
        "- The paper's figure shows pictures of two images; the pictures are not part of the public labels, so that "
        "only their label histograms are drawn. Which two the paper shows is not known; ours are chosen by rule."
    )
    record.write()


def original_labels(images: Annotations) -> Predictions:
    """Return the original label of each image as a prediction."""
    ranked = np.asarray(images.gold, np.int32)[:, None]
    return Predictions(
        ranked=ranked, num_items=images.num_items, num_positions=1, num_classes=images.num_labels, items=images.items,
        classes=images.labels, name="original labels",
    )  # fmt: skip


def _alphas(record: Recording, images: Annotations, draws: int) -> None:
    record.section("Images with a certainty below 0.99 (γ = 1)")
    record.say(
        f"Exact: by quadrature. Draws: the smallest and the largest count of {SEEDS} runs with {draws} draws each. "
        "The paper: 178."
    )
    rows = []
    for alpha in ALPHAS:
        fits = [cs.fit("dirichlet", images, alpha=alpha, draws=draws, seed=seed) for seed in range(SEEDS)]
        exact = cs.certainty(fits[0], exact=True)
        counts = [int((cs.certainty(fit, exact=False).items < 0.99).sum()) for fit in fits]
        rows.append({
            "alpha": alpha, "exact": int((exact.items < 0.99).sum()), "draws, least": min(counts),
            "draws, most": max(counts), "mean certainty, exact": exact.value,
        })  # fmt: skip
    record.table("alpha", rows, digits=4)


def _reliabilities(record: Recording, images: Annotations) -> None:
    record.section("Reliability")
    record.say(
        "α = 0.1, by quadrature; accuracy is the UA accuracy of the original CIFAR-10 label as a prediction, the "
        "probability that it is the most plausible label."
    )
    rows, original = [], original_labels(images)
    for reliability in RELIABILITIES:
        fit = cs.fit("dirichlet", images, reliability=reliability, alpha=0.1)
        exact = cs.certainty(fit, exact=True)
        rows.append({
            "reliability": reliability, "certainty": exact.value, "images below 0.99": int((exact.items < 0.99).sum()),
            "images below 0.9": int((exact.items < 0.9).sum()),
            "accuracy of the original label": cs.evaluate(fit, original, exact=True).value,
        })  # fmt: skip
    record.table("reliability", rows, digits=4)


def _original(record: Recording, images: Annotations, fit: Any) -> None:
    record.section("Original labels (Figure 3; γ = 1, α = 0.1)")
    certainty = cs.certainty(fit, exact=True).items
    original = original_labels(images)
    score = cs.evaluate(fit, original, exact=False)
    accuracy = cs.evaluate(fit, original, exact=True).items
    order = np.argsort(certainty, kind="stable")
    groups = {
        "all": order,
        "1,000 least certain": order[:_LEAST_CERTAIN],
        "certainty below 0.99": np.flatnonzero(certainty < 0.99),
        "certainty 0.99 or more": np.flatnonzero(certainty >= 0.99),
    }
    record.say(
        f"From draws, the UA accuracy of the original labels is {score.value:.4f} ± {score.sd:.4f} over draws of the "
        f"truth, {score.point:.4f} against the most frequent label. By quadrature:"
    )
    record.table("original-labels", [
        {
            "images": name, "number": len(chosen), "mean certainty": certainty[chosen].mean(),
            "UA accuracy": accuracy[chosen].mean(), "UA accuracy below 0.5": int((accuracy[chosen] < 0.5).sum()),
        }
        for name, chosen in groups.items()
    ], digits=4)  # fmt: skip
    record.say("The paper: the original labels are often poor where the certainty is low.")
    record.figure(
        "figure-3", _figure_3(images, certainty, accuracy, order),
        "Figure 3: the 1,000 least certain images, and the annotations of two images: the least certain one, and, "
        "among those with a certainty of 0.99 or more, the one whose original label is most surely wrong",
    )  # fmt: skip


@styled
def _figure_3(images: Annotations, certainty: np.ndarray, accuracy: np.ndarray, order: np.ndarray) -> Any:
    """Draw the sorted certainties with the accuracy of the original labels, and the votes of two images."""
    from matplotlib.figure import Figure

    least = order[:_LEAST_CERTAIN]
    wrong = int(np.argmin(np.where(certainty >= 0.99, accuracy, np.inf)))
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    curve, *histograms = figure.subplots(1, 3, width_ratios=[2, 1, 1])
    place = np.arange(1, len(least) + 1)
    curve.plot(place, certainty[least], color=BLUE, linewidth=2.5, label="certainty")
    curve.scatter(
        place, accuracy[least], s=5, color=VERMILLION, linewidth=0, rasterized=True, zorder=3,
        label="UA accuracy of the original label",
    )  # fmt: skip
    curve.set(title="The least certain images", xlabel="images, least certain first", ylim=(-0.02, 1.02))
    curve.legend(loc="center right")
    curve.grid(axis="y")
    for ax, image in zip(histograms, (int(order[0]), wrong), strict=True):
        _votes(ax, images, image)
        original = images.labels[images.gold[image]]
        ax.set(title=f"Image {images.items[image]}: certainty {certainty[image]:.2f}, original label {original}")
    return figure


def _votes(ax: Any, images: Annotations, image: int) -> None:
    """Draw how often an image got each label."""
    own = np.asarray(images.item) == image
    votes = np.bincount(np.asarray(images.label)[own], np.asarray(images.weight)[own], images.num_labels)
    ax.barh(np.arange(images.num_labels), votes, color=BLUE)
    ax.set_yticks(np.arange(images.num_labels), images.labels)
    ax.set(xlabel="annotations")
    ax.invert_yaxis()
