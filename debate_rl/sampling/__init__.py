"""Which problems a run has, and which of them each step draws."""
