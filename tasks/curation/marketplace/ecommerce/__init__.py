"""Tasks of an e-commerce evaluation, each case of which is asked in eight languages.

phrases      what is said of a case, in every language
cases        what is drawn: one case per call, for all languages
"""
