"""Checks before a run: of its configuration and problems at every start, of debates by the doctor."""
