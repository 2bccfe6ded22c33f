"""Tests of code problems, as the problem's known solutions find them."""
