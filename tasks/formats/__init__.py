"""Files that are written by one stage and read by several others."""
