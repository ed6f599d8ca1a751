"""Sweeps: arms that differ in some keys, each trained with several seeds, and compared in tables."""
