"""Sources that the project writes itself."""
