"""One run of training: opening and resuming it, its steps, its checks, and how it ends."""
