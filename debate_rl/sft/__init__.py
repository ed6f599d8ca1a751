"""Supervised training on replies: where they come from, and how a run learns them."""
