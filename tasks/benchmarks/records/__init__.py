"""What the records of prompts predict, measured on the ledgers of finished phases."""
