"""What the lower half of a debate shows, as lines; nothing here draws."""
