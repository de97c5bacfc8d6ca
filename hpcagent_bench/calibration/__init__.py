"""The judge measured by itself: A/A studies of the protocols on this machine (docs/measurement.md)."""
