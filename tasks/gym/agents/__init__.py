"""What agents are asked, and how the verifier's verdict is read and scored."""
