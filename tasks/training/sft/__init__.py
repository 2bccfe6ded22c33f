"""Stage 2: long-CoT supervised fine-tuning."""
