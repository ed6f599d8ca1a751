"""Checks before a run: of configuration and problems at every start, and of debates by the doctor."""
