"""Formulas: pure functions on tensors and numbers; no I/O, no settings object, no logging."""
