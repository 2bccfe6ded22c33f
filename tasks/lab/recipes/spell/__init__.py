"""SPELL (arXiv 2509.23863): self-play of questioner, responder and verifier on documents."""
