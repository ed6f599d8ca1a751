"""One run of training: its session, its steps, and what each step rolls out and records."""
