"""Curricula: stages that train one after the other, each a run of its own."""
