"""``debate eval``: plays held-out problems with a policy, stores its replies, and computes its figures."""
