"""Block-exact linkage of records."""
