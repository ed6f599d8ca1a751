"""The application: training, evaluation, reports and the inspector, behind the `debate` command."""
