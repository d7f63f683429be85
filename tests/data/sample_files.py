"""The script of the sample files, which ship with the package: `python tests/data/sample_files.py FOLDER`."""

import csv
import sys
from pathlib import Path

import numpy as np

FIRST = (
    "Anna Ben Carla David Elena Felix Greta Hugo Ida Jan Karla Leo Mira Nils Olga Paul Rosa Simon Tara Uwe"
).split()
LAST = (
    "Albrecht Becker Conrad Dietz Engel Fischer Graf Huber Iversen Jung Keller Lang Meyer Neumann Otto Peters Richter "
    "Schulz Thoma Vogel Weber Zander"
).split()
TOWNS = "Aachen Bonn Celle Dresden Essen Fulda".split()
NAMES = "ana ben chi dev eva fay gus hal ivy jon kim lee".split()


def write(path, head, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def make(folder):
    """Write all files; every number comes from one stream, in this order."""
    folder, random = Path(folder), np.random.default_rng(0)
    _photographs(folder, random)
    _people(folder, random)
    _shapes(folder, random)


def _photographs(folder, random):
    labels, number = np.array(["cat", "dog", "fox"]), 150
    gold = random.choice(3, number, p=[0.45, 0.35, 0.2])
    accuracy = np.linspace(0.55, 0.95, 12)
    random.integers(0, 3, 12)  # not used: it keeps the stream
    rows = []
    for item in range(number):
        for annotator in random.choice(12, 4, replace=False):
            right = random.random() < accuracy[annotator]
            label = gold[item] if right else random.choice([k for k in range(3) if k != gold[item]])
            known = labels[gold[item]] if item < 30 else ""
            rows.append((f"photo-{item + 1:03d}", NAMES[annotator], labels[label], known))
    write(folder / "labels.csv", ["item", "annotator", "label", "gold"], rows)
    for system, error in (("a", 0.08), ("b", 0.14)):
        predicted = [true if random.random() > error else (true + 1) % 3 for true in gold]
        rows = [(f"photo-{item + 1:03d}", labels[label]) for item, label in enumerate(predicted)]
        write(folder / f"system_{system}.csv", ["item", "label"], rows)


def _people(folder, random):
    people = [
        (
            random.choice(FIRST), random.choice(LAST),
            f"{random.integers(1940, 2006)}-{random.integers(1, 13):02d}-{random.integers(1, 29):02d}",
            random.choice(TOWNS),
        )
        for _ in range(160)
    ]  # fmt: skip

    def noisy(person):
        person = list(person)
        if random.random() < 0.3:
            field = random.integers(0, 2)
            place = random.integers(1, len(person[field]))
            person[field] = person[field][:place] + chr(97 + random.integers(26)) + person[field][place + 1 :]
        if random.random() < 0.05:
            person[3] = ""
        return person

    head = ["id", "first", "last", "born", "town"]
    write(folder / "clinic.csv", head, [(f"c{place + 1}", *person) for place, person in enumerate(people[:100])])
    rows = [(f"r{place + 1}", *noisy(person)) for place, person in enumerate(people[40:])]
    write(folder / "register.csv", head, rows)


def _shapes(folder, random):
    cluster = random.integers(0, 3, 60)
    size = np.array([[0, 0], [4, 0], [2, 4]])[cluster] + random.normal(size=(60, 2))
    rows = [(f"shape-{item + 1:02d}", f"{width:.2f}", f"{height:.2f}") for item, (width, height) in enumerate(size)]
    write(folder / "items.csv", ["item", "width", "height"], rows)
    pairs = [(item, other) for item in range(60) for other in range(item)]
    rows = []
    for expert, accuracy in (("ana", 0.95), ("ben", 0.9), ("chi", 0.8), ("dev", 0.85)):
        for chosen in random.choice(len(pairs), 150, replace=False):
            item, other = pairs[chosen]
            together = (cluster[item] == cluster[other]) == (random.random() < accuracy)
            answer = "together" if together else "apart"
            rows.append((expert, f"shape-{item + 1:02d}", f"shape-{other + 1:02d}", answer))
    write(folder / "answers.csv", ["expert", "item_a", "item_b", "answer"], rows)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir()
    make(sys.argv[1])
