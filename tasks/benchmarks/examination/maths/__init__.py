"""Final answers: exact values, and the classes of answers about them."""
