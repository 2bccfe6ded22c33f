"""What each prompt cost and earned, over whole phases of RL: read from the ledgers they left."""
