"""Mentions for the tests of the mention-pair model."""

from consilience.data import read_mentions

TOY = [
    ("m1", "a1", "DN"), ("m1", "a2", "DN"), ("m2", "a1", "DO(m1)"), ("m2", "a2", "DO(m1)"), ("m2", "a3", "DN"),
    ("m3", "a2", "DO(m2)"), ("m3", "a3", "DO(m1)"), ("m3", "a1", "DO(m2)"),
]  # fmt: skip


def mentions_of(rows=TOY, **options):
    """Return mentions of rows of mention, annotator and annotation, and of gold labels where they have a fourth."""
    columns = zip(("mention_id", "annotator_id", "annotation", "gold"), zip(*rows, strict=True), strict=False)
    return read_mentions(dict(columns), **options)
