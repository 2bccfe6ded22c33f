"""MarsRL (arXiv 2511.11373): solver, verifier and corrector trained together in one policy."""
