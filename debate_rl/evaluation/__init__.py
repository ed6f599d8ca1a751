"""``debate eval``: what a policy says to held-out problems, kept on disk, and its figures."""
