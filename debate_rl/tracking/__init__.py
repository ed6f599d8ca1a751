"""Where a run's figures go: files, the screen, and other programs' charts."""
