"""Clusterings of items that views of experts are compared with."""
