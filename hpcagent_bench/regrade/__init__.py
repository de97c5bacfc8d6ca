"""Grading recorded submissions later: what is owed a final grade, the grades, and their way back."""
