"""The programs that run inside a grading child, and how they are built."""
