"""A generator of verifiable marketplace tasks in nine domains and eight languages.

items        Item: one task with its answer, worked steps and a typical mistake
words        the vocabulary of the marketplace in eight languages
drawing      draw_items: the entry point to all domains
maths, coding, instruction                  domains of the reasoning parent
choice, extraction, tool_use, open_text     domains of the commerce parent
science, general                            domains of the papers' recipes, not of the sample world

Curation writes raw rows from it (the sample world), and foundation writes the pretraining
corpus of the shipped base model. All functions are pure and seeded.

Every draw function takes a random source and a level and returns one Item. Levels run from
1 (mostly solved by the shipped model after fine-tuning) to 5 (seldom or never solved).
"""
