"""Programs as answers: tests of them, and who passes, found out where the program cannot reach.

``gold.py`` is the gold answer of a problem of kind "code", ``harness.py`` finds the program of a reply and
runs it in the sandbox, and ``remote.py`` is what its two sessions speak.
"""
