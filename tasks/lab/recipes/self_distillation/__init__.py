"""Self-distillation: the policy, which sees why a response failed, teaches itself."""
