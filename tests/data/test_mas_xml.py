"""Mentions from MAS-XML: what is read, what is left out, and what is refused with its line."""

import contextlib
import random
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.cli import main
from consilience.data.mentions import MENTION_TYPES, Mentions, read_mas_xml, read_mentions
from consilience.errors import InputError, InputWarning, UnknownName, UnsupportedRequest

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE gnomedoc SYSTEM "dtd/masxmlpd.dtd">\n'

FERRY = (
    HEAD
    + """<gnomedoc>
<header><titleStmt><title>About a ferry</title></titleStmt></header>
<body><section><p id="p1"><s id="s1">
<ne id="ne1"><W>The</W> <nphead id="h1"><W>ferry</W></nphead> <W>of</W> <ne id="ne2"><W>Zoë</W></ne></ne>
<W>left</W> <W>;</W> <ne id="ne3"><W>it</W></ne> <W>rained</W> <W>on</W> <ne id="ne4"><W>her</W></ne>
<ne id="ne5"><W>boat</W></ne> <ne id="ne6"><W>them</W></ne>
<PDante id="ne1"><interpretation>
<anchor mode="a" type="DN" user_id="u1" agree="y" interface="0" timestamp="2020-01-01 10:00:00" user_rating="70" />
<anchor mode="a" type="DN" user_id="u2" agree="y" />
<anchor mode="v" type="DN" user_id="u3" agree="y" />
<anchor mode="e" type="DN" user_id="e1" favoured="y" />
</interpretation><comment type="bridge" type_id="8">a note, not words of the text</comment></PDante>
<PDante id="ne3"><interpretation>
<anchor mode="a" type="NR" user_id="u1" />
<anchor mode="a" type="DO" ante="ne1" user_id="u2" agree="y" />
<anchor mode="v" type="DO" ante="ne1" user_id="u3" agree="n" />
<anchor mode="e" type="DO" ante="ne1" user_id="e1" favoured="" />
<anchor mode="e" type="NR" user_id="e1" favoured="y" />
</interpretation><skip user_id="u4" /></PDante>
<PDante id="ne4" end_chr="40"><interpretation>
<anchor mode="a" type="DO" ante="ne2" user_id="u1" agree="y" />
<anchor mode="a" type="PR" user_id="u2" agree="y" />
<anchor mode="v" type="DO" ante="ne2" user_id="u3" agree="y" />
<anchor mode="e" type="DO" ante="ne2" user_id="e1" favoured="y" />
<anchor mode="e" type="DN" user_id="e2" favoured="y" />
<anchor mode="e" type="SE" ante="ne1" user_id="e2" />
</interpretation></PDante>
<PDante id="ne5" visibility="hidden"><interpretation>
<anchor mode="a" type="DN" user_id="u1" /></interpretation></PDante>
<PDante id="ne6"><interpretation>
<anchor mode="a" type="DO" ante="ne1 ne2" user_id="u1" agree="y" />
<anchor mode="a" type="DO" ante="ne5" user_id="u2" agree="y" />
<anchor mode="a" type="PR" ante="ne1" user_id="u5" agree="y" />
<anchor mode="e" type="DO" ante="ne2 ne1" user_id="e1" />
</interpretation></PDante>
</s></p></section></body></gnomedoc>
"""
)

# No <W>, an id of its own, and answers before their markable.
MILL = """<gnomedoc id="mill"><body><section><p>
<PDante id="ne1"><interpretation><anchor mode="a" type="DN" user_id="u2"/></interpretation></PDante>
<PDante id="ne2"><interpretation><anchor mode="a" type="DO" ante="ne1" user_id="u1"/>
<anchor mode="e" type="DO" ante="ne1" user_id="e1"/></interpretation></PDante>
<s id="s1"><ne id="ne1">An old <emph>mill</emph></ne> burns &amp; <ne id="ne2">it</ne> falls.</s>
</p></section></body></gnomedoc>
"""

LABELS = [("ne1", "u1", "DN"), ("ne1", "u2", "DN"), ("ne3", "u1", "NR"), ("ne3", "u2", "DO(ne1)"),
          ("ne4", "u1", "DO(ne2)"), ("ne4", "u2", "PR"), ("ne6", "u5", "PR(ne1)")]  # fmt: skip


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    (folder / "deeper").mkdir(parents=True)
    (folder / "b-ferry-game.xml").write_text(FERRY)
    (folder / "deeper" / "a.xml").write_text(MILL)
    (folder / "readme.txt").write_text("not XML")
    return folder


def labels_of(mentions):
    codes = mentions.label_codes()
    names = codes.names[codes.label]
    return list(zip(mentions.mentions[mentions.mention], mentions.annotators[mentions.annotator], names, strict=True))


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return read_mas_xml(path, **options)


def gold_of(mentions):
    return [MENTION_TYPES[code] if code >= 0 else None for code in mentions.gold_type]


def test_a_document_is_read_as_the_players_answered(corpus):
    mentions = read(corpus / "b-ferry-game.xml")
    assert labels_of(mentions) == LABELS
    assert mentions.documents.tolist() == ["b-ferry"]
    assert mentions.mentions.tolist() == ["ne1", "ne2", "ne3", "ne4", "ne6"]
    assert mentions.start.tolist() == [0, 3, 6, 9, 11]
    assert mentions.end.tolist() == [3, 3, 6, 9, 11]
    assert gold_of(mentions) == ["DN", None, "NR", None, None]


def test_what_mentions_cannot_hold_is_counted(corpus):
    with pytest.warns(InputWarning) as caught:
        read_mas_xml(corpus / "b-ferry-game.xml")
    (warning,) = caught
    for part in ("1 hidden markables", "1 labels that point to a hidden", "2 labels with several antecedents",
                 "1 answers of type SE", "1 gold labels on which experts differ", "1 markables have a span corrected",
                 "3 validations were left out"):  # fmt: skip
        assert part in str(warning.message)


def test_players_who_agree_count_as_annotators_on_request(corpus):
    agreeing = {("ne1", "u3", "DN"), ("ne4", "u3", "DO(ne2)")}
    assert set(labels_of(read(corpus / "b-ferry-game.xml", validations="rows"))) == {*LABELS, *agreeing}


def test_a_folder_is_read_in_the_order_of_its_paths(corpus):
    mentions = read_mas_xml([corpus / "deeper" / "a.xml"])
    assert mentions.start.tolist() == [0, 5]
    assert mentions.end.tolist() == [2, 5]
    assert gold_of(mentions) == [None, "DO"]
    both = read(corpus)
    assert both.documents.tolist() == ["b-ferry", "mill"]
    assert both.mentions[-1] == "mill/ne2"
    with pytest.warns(InputWarning, match="of the MAS-XML"):
        again = read_mentions(str(corpus))
    assert again.fingerprint() == both.fingerprint()
    assert read([corpus / "deeper" / "a.xml", corpus / "b-ferry-game.xml"]).documents.tolist() == ["mill", "b-ferry"]


def test_validations_alone_are_no_reason_to_warn(tmp_path):
    path = tmp_path / "v.xml"
    path.write_text(MILL.replace("</interpretation>", '<anchor mode="v" type="DN"/></interpretation>', 1))
    assert len(read_mas_xml(path).mention) == 2


def test_the_younger_layout_names_markables_by_their_antecedents(tmp_path):
    path = tmp_path / "dali.xml"
    path.write_text(
        '<dalidoc><primaryData><textualContent>not tokens</textualContent></primaryData><body><section><p><s>'
        '<W id="w0">A</W><W id="w1">wolf</W><W id="w2">ate</W><W id="w3">it</W></s>'
        '<nh><am id="am1" span="w0..w1"/></nh><nh><am id="am2" span="w3..w3"/></nh>'
        '<PDante id="am2"><interpretation><anchor mode="a" type="DO" ante="ne1" user_id="u"/></interpretation></PDante>'
        "</p></section></body></dalidoc>"
    )
    mentions = read_mas_xml(path)
    assert labels_of(mentions) == [("ne2", "u", "DO(ne1)")]
    assert (mentions.start.tolist(), mentions.end.tolist()) == ([0, 3], [1, 3])


def test_other_encodings_are_read_as_declared(tmp_path):
    path = tmp_path / "latin.xml"
    for encoding in ("iso-8859-1", "windows-1252", "utf-16"):
        path.write_bytes(FERRY.replace("utf-8", encoding).replace("u5", "é").encode(encoding))
        assert "é" in read(path).annotators


ANCHOR = '<anchor mode="a" type="DN" user_id="u2"/>'
BOMB = '<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n'


def swap(old, new):
    assert old in MILL
    return MILL.replace(old, new, 1)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", r"bad\.xml: the file is empty"),
        (b"\0\1\2", r"line 1, character 1: this is not well-formed XML"),
        ("just text", "line 1, character 1: this is not well-formed XML: syntax error"),
        (swap("</section>", ""), r"bad\.xml, line 6, character \d+: this is not well-formed XML: mismatched tag"),
        (MILL.encode()[:-20], r"line 6, character \d+: this is not well-formed"),
        (FERRY.encode("latin-1"), r"line 6, character \d+: this is not well-formed XML: not well-formed"),
        (FERRY.replace("utf-8", "utf-7"), r"line 1: .*encoding that is not read here \(value 'utf-7'\)"),
        (FERRY.replace("utf-8", "no-such"), r"line 1: .*encoding that is not read here"),
        (BOMB + MILL, r"bad\.xml, line 1: the file declares an entity.*\(value 'a'\)"),
        ('<!DOCTYPE g [\n<!ENTITY x SYSTEM "file:///etc/passwd">]>' + MILL, "line 2: the file declares an entity"),
        ('<!DOCTYPE g [<!ENTITY % x SYSTEM "http://localhost/x">%x;]>' + MILL, "line 1: the file declares an entity"),
        (HEAD + swap("&amp;", "&eacute;"), r"line 7: the entity is not known.*'&eacute;'"),
        (HEAD + swap('ante="ne1"', 'ante="&x;ne1"'), r"line 5: the entity is not known.*'&x;'"),
        (swap("&amp;", "&eacute;"), r"line 5: the entity is not known.*'&eacute;'"),
        (swap('ne id="ne2"', 'ne id="ne1"'), r"line 5: the markable on line 5 has the same id.*'ne1'"),
        (swap('"DN"', '"XX"'), r"line 2: the type of an anchor is DN, DO, NR, PR or SE.*'XX'"),
        (swap('type="DN" ', ""), "line 2: the type of an anchor is"),
        (swap('mode="a"', 'mode="x"'), r"line 2: the mode of an anchor is a .*'x'"),
        (swap('mode="a" ', ""), "line 2: the mode of an anchor is"),
        (swap('user_id="u2"', ""), "line 2: the anchor has no user_id"),
        (swap('user_id="u2"', 'user_id="u2" agree="perhaps"'), r"line 2: agree is y or n .*'perhaps'"),
        (swap('user_id="e1"', 'user_id="e1" favoured="best"'), r"line 4: favoured is y, n or empty .*'best'"),
        (swap('ante="ne1"', ""), r"line 3: DO has an antecedent.*'DO'"),
        (swap('type="DN"', 'type="DN" ante="ne2"'), r"line 2: DO has an antecedent.*'DN ne2'"),
        (swap('ante="ne1"', 'ante="ne1,ne2"'), r"line 3: DO has an antecedent \(several with spaces"),
        (swap('ante="ne1"', 'ante="ne9"'), r"line 3, column 'annotation': .*no mention of the document.*'DO\(ne9\)'"),
        (swap('ante="ne1"', 'ante="ne2"'), r"line 3, column 'annotation': .*the mention itself.*'DO\(ne2\)'"),
        (swap('ante="ne1" user_id="e1"', 'ante="ne9" user_id="e1"'), r"line 4, column 'gold': .*'DO\(ne9\)'"),
        (swap('PDante id="ne1"', 'PDante id="ne7"'), r"line 2: there is no markable of this id .*'ne7'"),
        (swap('PDante id="ne1"', 'PDante id="ne1" visibility="no"'), r"line 2: the visibility of a markable.*'no'"),
        (swap(">it</ne>", "></ne>"), r"line 5: the markable has no token"),
        (swap("<section>", "<section>" + ANCHOR), "line 1: an anchor stands outside of <PDante>"),
        (swap("<section>", '<section><am id="am8" span="w0-w1"/>'), r"line 1: the span of a markable.*'w0-w1'"),
        (MILL.replace("mode=\"a\"", "mode=\"e\""), "no player annotated anything"),
        ("<gnomedoc><body/></gnomedoc>", r"bad\.xml: the file has no markable"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_file_and_line(content, match, tmp_path):
    path = tmp_path / "bad.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=match):
        read(path)


def test_all_problems_of_all_files_are_shown_together(corpus):
    (corpus / "c.xml").write_text(swap('"DN"', '"XX"').replace("mill", "c", 1))
    (corpus / "d.xml").write_text(swap('mode="a"', 'mode="x"').replace("mill", "b-ferry", 1))
    with pytest.raises(InputError) as caught:
        read(corpus)
    text = str(caught.value)
    assert "c.xml, line 2: the type of an anchor" in text
    assert "d.xml, line 2: the mode of an anchor" in text
    assert "b-ferry-game.xml is a document of the same name" in text


def test_problems_of_labels_name_the_file_among_several(corpus):
    (corpus / "deeper" / "a.xml").write_text(swap('ante="ne1"', 'ante="ne9"'))
    with pytest.raises(InputError, match=r"deeper.a\.xml, line 3, column 'annotation'"):
        read(corpus)
    assert "mill/ne2" in read(corpus, antecedents="drop").mentions
    (corpus / "b-ferry-game.xml").write_text(FERRY.replace('"u2" agree', '"u1" agree'))
    with pytest.raises(InputError, match=r"ferry-game\.xml, line 11, .*an earlier row has the same mention"):
        read(corpus, duplicates="error", antecedents="drop")


def test_sources_that_hold_no_xml_are_refused(tmp_path):
    for source in (tmp_path, []):
        with pytest.raises(InputError, match=r"there is no \.xml file"):
            read_mas_xml(source)
    with pytest.raises(InputError, match="there is no such file"):
        read_mas_xml(tmp_path / "none.xml")
    (tmp_path / "x.xml.gz").write_bytes(b"x")
    with pytest.raises(InputError, match="compressed XML is not read"):
        read_mas_xml(tmp_path / "x.xml.gz")
    with pytest.raises(UnknownName, match="'ignore', 'rows'"):
        read_mas_xml(tmp_path, validations="decisions")
    with pytest.raises(UnsupportedRequest, match="columns="):
        read_mentions(tmp_path, columns={"gold": "truth"})


def test_nothing_that_a_file_names_is_opened(tmp_path):
    """The document type and a file that an entity would include both lie beside the document, and are not read."""
    (tmp_path / "dtd").mkdir()
    (tmp_path / "dtd" / "masxmlpd.dtd").write_text('<!ENTITY eacute "OPENED"><!ATTLIST anchor user_id CDATA "OPENED">')
    path = tmp_path / "x.xml"
    path.write_text(HEAD + swap("&amp;", "&eacute;"))
    with pytest.raises(InputError, match="not known, because the document type is not opened"):
        read_mas_xml(path)
    path.write_text(HEAD + swap('user_id="u2"', ""))
    with pytest.raises(InputError, match="has no user_id"):
        read_mas_xml(path)
    path.write_text('<!DOCTYPE g [<!ATTLIST anchor user_id CDATA "DEFAULT">]>' + swap('user_id="u2"', ""))
    with pytest.raises(InputError, match="has no user_id"):
        read_mas_xml(path)


def test_a_deep_file_is_read_without_recursion(tmp_path):
    path = tmp_path / "deep.xml"
    deep = swap("<section>", "<section>" + "<unit>" * 100_000)
    path.write_text(deep.replace("</section>", "</unit>" * 100_000 + "</section>"))
    assert len(read_mas_xml(path).mention) == 2


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "fuzz.xml"


@given(seed=st.integers(0, 2**32), changes=st.integers(1, 12))
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_bytes_are_read_or_refused(fuzzed, seed, changes):
    chance = random.Random(seed)
    content = bytearray((FERRY if seed % 2 else MILL).encode())
    for _ in range(changes):
        place = chance.randrange(len(content))
        kind = chance.randrange(4)
        if kind == 0:
            content[place] = chance.choice(b"<>&;\"'=/ !?[]\0\xffaeny1")
        elif kind == 1:
            del content[place : place + chance.randrange(1, 30)]
        elif kind == 2:
            content[place:place] = content[chance.randrange(len(content)) :][: chance.randrange(1, 60)]
        else:
            content[place] = chance.randrange(256)
        if not content:
            break
    fuzzed.write_bytes(bytes(content))
    with contextlib.suppress(InputError):
        mentions = read(fuzzed, validations=chance.choice(["ignore", "rows"]), antecedents="drop")
        assert isinstance(mentions, Mentions)
        assert (mentions.start <= mentions.end).all()


def test_a_folder_is_fitted_and_labelled(corpus):
    fitted = cs.fit("mpa", read(corpus), coreference="links")
    labels = dict(zip(fitted.labels()["item"], fitted.labels()["label"], strict=True))
    assert list(labels) == list(fitted.data.mentions)
    assert labels["b-ferry/ne1"] == "DN"
    assert labels["mill/ne2"] == "DO(mill/ne1)"


def test_the_command_line_fits_a_folder(corpus, tmp_path, capsys):
    # Of so few annotations nothing tells signal from chance, which is an alert.
    assert main(["fit", "mpa", str(corpus), "--coreference", "links", "-o", str(tmp_path / "run")]) == 3
    printed = capsys.readouterr()
    assert "9 annotations, 7 mentions, 3 annotators, 2 documents" in printed.out
    assert "2 labels with several antecedents were left out" in printed.err
