"""Curricula: stages that train one after the other, each as a separate run."""
