"""Noisy verdicts: rewards that are corrected for what is known of their verifier's errors."""
