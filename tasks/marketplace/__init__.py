"""A small marketplace that draws verifiable work in seven domains and seven languages.

items        Item: one piece of work with its answer, worked steps and a typical blunder
words        the marketplace's vocabulary in seven languages
drawing      draw_items: the one door to all domains
maths, coding, instruction                  what the reasoning parent learns
choice, extraction, tool_use, open_text     what the commerce parent learns

Two users: curation writes raw rows from it (the sample world), foundation writes the
pretraining corpus of the shipped base model. Everything here is pure and seeded.

Every drawer takes a random source and a level and returns one Item. Levels run from 1
(mostly solved by the shipped model after fine-tuning) to 5 (seldom or never).
"""
