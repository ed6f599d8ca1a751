"""Programs as answers: tests of them, and who passes, found out where the program cannot reach.

``gold.py`` is the gold answer of a problem of kind "code", ``harness.py`` runs it in the sandbox,
``remote.py`` is what its two sessions speak, and ``code.py`` finds the program in a reply.
"""
