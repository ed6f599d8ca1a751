"""The grader: exact rules first, then math-verify in processes that can be killed."""
