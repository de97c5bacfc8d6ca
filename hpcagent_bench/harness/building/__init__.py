"""From what was delivered to something a child can load, with what may be told about it."""
