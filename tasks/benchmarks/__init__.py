"""Measurements beside other projects; nothing imports them."""
