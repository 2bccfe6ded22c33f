"""One file per policy loss: its formula and nothing else."""
