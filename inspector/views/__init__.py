"""What can be seen of a debate, as plain values: every face of the inspector shows these."""
