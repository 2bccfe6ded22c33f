"""From scored groups to one update of the policy."""
