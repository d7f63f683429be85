"""Anything in: sources are read by the one contract whose columns they have."""

import os
from pathlib import Path

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.data import Annotations, Chains, Constraints, Mentions, Partition, Predictions, Rankings, Ratings
from consilience.data.accept import DATA, as_contract, as_systems, is_source, own_ids
from consilience.data.contract import Contract
from consilience.errors import InputError, UnsupportedRequest

LABELS = {"item": ["a", "a", "b"], "annotator": ["x", "y", "x"], "label": ["1", "2", "1"]}
ROWS = [dict(zip(LABELS, row, strict=True)) for row in zip(*LABELS.values(), strict=True)]
TABLES = {
    Annotations: LABELS,
    Ratings: {"item": ["a"], "annotator": ["x"], "rating": [2.5]},
    Rankings: {"item": ["a", "a"], "annotator": ["x", "x"], "class": ["p", "q"], "rank": [1, 2]},
    Mentions: {"mention_id": ["m"], "annotator_id": ["x"], "annotation": ["DN"]},
    Constraints: {"expert": ["x"], "item_a": ["a"], "item_b": ["b"], "answer": ["together"]},
    Partition: {"record": ["a", "b"], "entity": ["1", "1"]},
    Predictions: {"item": ["a"], "class": ["p"], "score": [0.5]},
}

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")


@pytest.fixture(params=["csv", "jsonl", "frame", "dict", "rows"])
def source(request, tmp_path):
    frame = pandas.DataFrame(LABELS)
    if request.param == "csv":
        frame.to_csv(tmp_path / "labels.csv", index=False)
        return str(tmp_path / "labels.csv")
    if request.param == "jsonl":
        frame.to_json(tmp_path / "labels.jsonl", orient="records", lines=True)
        return tmp_path / "labels.jsonl"
    return {"frame": frame, "dict": LABELS, "rows": ROWS}[request.param]


def test_every_source_is_read_as_the_same_annotations(source):
    expected = cs.read_annotations(LABELS)
    for contracts in ((Annotations,), (Annotations, Mentions), (Contract,)):
        read = as_contract(source, *contracts)
        assert read.fingerprint() == expected.fingerprint()
        assert as_contract(read, *contracts) is read


@pytest.mark.parametrize("contract", TABLES, ids=lambda contract: contract.__name__)
def test_data_know_the_path_of_their_file(contract, tmp_path, monkeypatch):
    """As it was given; of an absolute one the name alone, since pages go to others."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "folder" / "the table.csv"
    path.parent.mkdir()
    pandas.DataFrame(TABLES[contract]).to_csv(path, index=False)
    for relative in ("folder/the table.csv", "./folder/the table.csv", Path("folder", "the table.csv")):
        assert contract.read(relative).file == os.path.join("folder", "the table.csv")
    with open(path) as stream:
        sources = {path: path.name, str(path): path.name, stream: ""}
        for source, name in sources.items():
            assert as_contract(source, contract).file == name
    assert contract.read(path).file == path.name
    assert as_contract(TABLES[contract], contract).file == ""
    assert contract.file == ""


@pytest.mark.parametrize("contract", TABLES, ids=lambda contract: contract.__name__)
def test_the_columns_say_what_a_table_is(contract):
    others = (Partition, Predictions) if contract in (Partition, Predictions) else DATA
    assert type(as_contract(TABLES[contract], *others)) is contract


def test_columns_of_other_names_and_the_options_of_the_reader():
    table = {"item": ["a", "a"], "annotator": ["x", "x"], "said": ["1", ""]}
    read = as_contract(table, Annotations, Ratings, columns={"label": "said"}, missing="drop")
    assert isinstance(read, Annotations)
    assert read.num_annotations == 1


def test_columns_of_several_contracts_or_of_none_are_refused(tmp_path):
    (tmp_path / "both.csv").write_text("item,annotator,label,score\na,x,1,2\n")
    with pytest.raises(InputError) as caught:
        as_contract(tmp_path / "both.csv", Annotations, Ratings)
    (problem,) = caught.value.problems
    assert "'item', 'annotator', 'label', 'score' are those of several kinds" in problem.message
    assert "item, annotator, label (Annotations); item, annotator, rating (Ratings)" in problem.remedy
    assert problem.file == str(tmp_path / "both.csv")
    with pytest.raises(InputError, match="the columns 'who', 'what' are of no kind of data"):
        as_contract({"who": ["a"], "what": ["b"]}, Annotations, Ratings)
    with pytest.raises(InputError, match="are those of Ratings, which are not taken here.*columns={'label': …}"):
        as_contract(TABLES[Ratings], Annotations, Rankings)
    with pytest.raises(InputError, match="there is no column 'label'; the table has 'who', 'what'"):
        as_contract({"who": ["a"], "what": ["b"]}, Annotations)


@pytest.mark.parametrize("given", [None, 3, np.zeros((2, 3)), cs.read_ratings(TABLES[Ratings])], ids=str)
def test_what_cannot_be_read_is_refused_by_name(given):
    assert not is_source(given)
    message = "'mace' takes Annotations, as read_annotations returns them; this is"
    with pytest.raises(UnsupportedRequest, match=f"{message} {type(given).__name__}"):
        as_contract(given, Annotations, whose="'mace'")


def test_files_of_other_forms_are_recognised(tmp_path):
    (tmp_path / "a.conll").write_text("#begin document (d)\nd\t(0)\n#end document\n")
    assert type(as_contract(tmp_path / "a.conll", Chains, Predictions)) is Chains
    (tmp_path / "nested.json").write_text('[[[["p"], ["q"]]]]')
    assert type(as_contract(tmp_path / "nested.json", Annotations, Rankings)) is Rankings


def test_systems_are_a_dict_by_name():
    for given in (None, {}, ["a.csv"], pandas.DataFrame(LABELS)):
        with pytest.raises(UnsupportedRequest, match="give a dict of name: predictions"):
            as_systems(None, given)


# ---- the front door ----


@pytest.fixture(scope="module")
def fit():
    return cs.fit("dirichlet", LABELS)


def test_fit_takes_any_source(source, fit):
    fitted = cs.fit("dirichlet", source)
    assert fitted.data.fingerprint() == fit.data.fingerprint()
    assert fitted.labels().equals(fit.labels())
    with pytest.raises(InputError, match="there is no column 'rating'"):
        cs.fit("normal-inverse-gamma", source)


def test_systems_are_read_by_what_the_truth_is(fit, tmp_path):
    table = pandas.DataFrame({"item": ["a", "b"], "class": ["1", "2"]})
    other = {"item": ["b", "a"], "class": ["1", "2"]}
    table.to_csv(tmp_path / "one.csv", index=False)
    read, swapped = cs.read_predictions(table), cs.read_predictions(other)
    for given in (table, tmp_path / "one.csv", str(tmp_path / "one.csv"), table.to_dict("list")):
        assert cs.evaluate(fit, given).value == cs.evaluate(fit, read).value
        assert cs.certainty(fit, of=given).value == cs.certainty(fit, of=read).value
    plain = cs.compare(fit, {"A": read, "B": swapped}, seed=3)
    mixed = cs.compare(fit, {"A": str(tmp_path / "one.csv"), "B": other}, seed=3)
    assert mixed.table.equals(plain.table)
    with pytest.raises(InputError, match="there is no column 'class'"):
        cs.evaluate(fit, {"record": ["a"], "entity": ["1"]})
    for given in (str(tmp_path / "one.csv"), {"A": tmp_path / "one.csv", "B": pandas.DataFrame(other)}):
        cs.report(fit, given, path=tmp_path / "report.html")
        assert "accuracy of “" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_agreement_takes_any_source(source):
    assert cs.agreement(source).value == cs.agreement(cs.read_annotations(LABELS)).value


def test_partitions_and_chains_are_scored_from_any_source(tmp_path):
    table = {"record": ["a", "b", "c"], "entity": ["1", "1", "2"]}
    frame = pandas.DataFrame(table)
    frame.to_csv(tmp_path / "one.csv", index=False)
    for given in (table, frame, tmp_path / "one.csv"):
        assert cs.score_partition(given, [0, 0, 0])["pairwise-recall"] == pytest.approx(1 / 3)
        assert cs.score_partition([0, 0, 0], given)["pairwise-precision"] == pytest.approx(1 / 3)
    (tmp_path / "a.conll").write_text("#begin document (d)\nd\t(0)\nd\t(0)\n#end document\n")
    read = cs.read_conll(tmp_path / "a.conll")
    scores = cs.score_coreference(str(tmp_path / "a.conll"), read)
    assert scores.sums.keys() == cs.score_coreference(read, read).sums.keys()
    records = {"id": ["r1", "r2", "r3"], "name": ["ann lee", "ann lee", "bob"], "year": ["1", "1", "2"]}
    linked = cs.fit("dirichlet-entity", pandas.DataFrame(records), draws=20)
    entities = {"id": ["r3", "r1", "r2"], "cluster": ["x", "y", "y"]}
    assert cs.evaluate(linked, entities).value == cs.evaluate(linked, cs.read_partition(entities)).value
    assert cs.score_partition(entities, linked)["pairwise-f1"] >= 0


def test_own_ids_are_the_values_of_the_source(tmp_path):
    rows = {"item": [7, 7, 8], "annotator": ["x", " y ", "x"], "label": [1.0, 2.0, 1.0], "gold": [None, None, 3]}
    data = Annotations.read(rows)
    expected = {"item": [7, 8], "annotator": ["x", " y "], "label": [1.0, 2.0, 3], "class": ["1", "2", "3"]}
    assert own_ids(rows, data) == own_ids(pandas.DataFrame(rows), data) == expected
    texts = {dimension: ids.tolist() for dimension, ids in data.ids.items()}
    pandas.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    assert own_ids(tmp_path / "rows.csv", data) == own_ids(data, data) == texts
