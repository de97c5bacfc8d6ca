"""Which loops may run in any order, and why others may not."""
