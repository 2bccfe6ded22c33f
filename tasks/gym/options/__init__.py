"""The options of a multiple-choice question in a text: announced, mentioned, denied, explained."""
