"""What the lower half of a debate shows, as lines: one module a panel, and nothing here draws."""
