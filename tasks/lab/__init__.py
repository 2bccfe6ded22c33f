"""The laboratory: recipes of papers, studies, the simulated step, dumps of other trainers."""
