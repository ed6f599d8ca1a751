"""What answers mean: notation, numbers, formulas, lists, letters and texts, each compared with its like."""
