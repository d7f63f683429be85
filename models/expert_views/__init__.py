"""Several clusterings of the same items, from what experts say of pairs (Chang and others 2017)."""
