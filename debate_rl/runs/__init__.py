"""What a run keeps on disk, how it is found again, and what may have changed meanwhile."""
