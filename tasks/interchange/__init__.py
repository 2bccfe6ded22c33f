"""Files that one stage writes and several others read, so that stages do not import each other."""
