"""What a recipe will meet before it is trained: its inputs, and what the model does in a few debates."""
