"""The index of a run, derived from its shards, for finding debates without reading the shards."""
