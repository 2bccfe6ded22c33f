"""LoRA between engines: factors and their merge, files of PEFT, merged rollouts, a canary."""
