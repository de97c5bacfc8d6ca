"""Calls nobody clocks: held-out cases, the independent re-verification, the sanitizers."""
