"""Calls under the clock: who runs when, the race of references, and whether a time can be believed."""
