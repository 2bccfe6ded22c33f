"""Low-rank adapters: their factors, what an engine does with them, and files of PEFT."""
