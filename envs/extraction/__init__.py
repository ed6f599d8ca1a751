"""The answer in a text: where it stands under each mode."""
