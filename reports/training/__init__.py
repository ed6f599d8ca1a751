"""How training went, from what a run left: settings, curves, final figures, questions, alarms."""
