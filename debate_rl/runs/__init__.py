"""The files of a run, how its weights are found, and what may have changed when it resumes."""
