"""Parse answers and compare them: notation, numbers, formulas, lists, letters and texts."""
