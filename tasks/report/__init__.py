"""What people see at the end of a run."""
