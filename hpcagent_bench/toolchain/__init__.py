"""Compilers, the one flag matrix and the C calling convention."""
