"""Can these numbers be right? Every table of results, recomputed from its own numbers and held against what is known.

Nothing is corrected and nothing is dropped: a check says what it reckoned, and what would be innocent.
"""
