"""What each prompt cost and earned: the ledger's tables, figure, phases and text."""
