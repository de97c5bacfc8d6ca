"""The machine that grades: whether it is itself today, and how fast it can move bytes."""
