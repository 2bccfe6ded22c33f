"""New data in, a promoted model out, or the reason why not."""
