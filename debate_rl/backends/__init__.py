"""Services that sample and learn instead of this process, under the same training loop."""
