"""A differential examiner: right and wrong answers, known by construction, for every verifier."""
