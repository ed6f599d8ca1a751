"""Checks before training: configuration and problems at every start, and debates by ``debate doctor``."""
