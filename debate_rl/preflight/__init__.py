"""Checks before a run: of configuration and problems at every launch, and of debates by the doctor."""
