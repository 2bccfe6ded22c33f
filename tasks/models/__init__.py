"""What a model directory is: folder, weights, architectures."""
