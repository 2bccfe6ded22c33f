"""The verifiers for other programs: JSON lines scored offline, and an HTTP endpoint."""
