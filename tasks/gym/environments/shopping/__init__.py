"""Purchases with wishes that a shopper has to gather, in the layout of EComAgentBench."""
