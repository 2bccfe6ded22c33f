"""Training with Megatron-core: many GPUs, or gloo processes on a laptop."""
