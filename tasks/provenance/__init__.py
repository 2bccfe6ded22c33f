"""What made this: statements, MLflow, rows, ledger, release, audit."""
