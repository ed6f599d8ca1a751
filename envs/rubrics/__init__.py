"""Score replies by a rubric: the prompts of a verifier model, its verdicts, and the cache of verdicts.

A verdict is the opinion of a model. It is not ground truth, and no code here calls a verdict right or wrong.
"""
