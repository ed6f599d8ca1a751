"""Recompute rewards or grades of stored debates under other rules, without a GPU or torch."""
