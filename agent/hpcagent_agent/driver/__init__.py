"""Runs agents: attempts, deadlines, markers, the relay out of the seal, and what each episode cost."""
