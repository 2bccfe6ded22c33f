"""GPU memory budget of a layout."""
