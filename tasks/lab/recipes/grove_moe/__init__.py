"""Grove MoE (arXiv 2508.07785): one small expert beside every group of experts."""
