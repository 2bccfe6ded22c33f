"""Policy losses, one file per formula."""
