"""Consilience."""
from consilience._version import __version__
