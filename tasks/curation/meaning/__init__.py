"""Questions that mean the same as a held-out one, as a text encoder that the user names sees it."""
