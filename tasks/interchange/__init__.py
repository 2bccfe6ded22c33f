"""What one stage leaves behind and several others read, so that they need not import each other."""
