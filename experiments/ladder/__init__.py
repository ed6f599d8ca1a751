"""The claims that people make of debate, judged on a ladder with two controls."""
