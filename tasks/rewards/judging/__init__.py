"""Judges of open text: who is asked, what is asked, how a reply is read and what it is worth."""
