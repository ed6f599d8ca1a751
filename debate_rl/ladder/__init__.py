"""The sceptic's ladder: what debate adds to cheaper ways, each at the same cost, and which claims hold."""
