"""The supervised warm start of a tiny model: its vocabulary, its demonstrations, its training."""
