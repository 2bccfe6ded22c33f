"""SPELL: questioner, responder and verifier in one policy."""
