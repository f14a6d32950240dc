"""What a study found, as numbers, identities and reasons; the sentences are in ``report/words``.

Messages of diagnostics, runs and obstacles are values too: their words are where they are raised.
"""
