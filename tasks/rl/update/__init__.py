"""From groups to one update of the policy."""
