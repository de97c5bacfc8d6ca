"""The pages people look at: a run's table in the terminal, as JSON, and as a figure."""
