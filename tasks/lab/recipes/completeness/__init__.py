"""Definition completeness: whether explanations of ambiguous words name all meanings."""
