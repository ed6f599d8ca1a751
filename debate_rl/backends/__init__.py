"""Engines that sample and learn in place of this process, under the same training loop."""
