"""The corpus gate: whether a kernel's reference is right on every input the judge can draw."""
