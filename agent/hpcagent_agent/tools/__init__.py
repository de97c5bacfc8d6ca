"""What an agent calls: the judge's client and its shell twin."""
