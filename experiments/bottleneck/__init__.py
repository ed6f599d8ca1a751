"""The bottleneck measured: what a frozen reader answers from reasoning alone, whole and corrupted."""
