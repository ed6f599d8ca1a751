"""The supervised warm start of a tiny model: vocabulary, demonstrations and training."""
