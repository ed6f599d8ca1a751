"""Supervised training on replies: reading, filtering and encoding replies, and the training itself."""
