"""What a study found, as numbers, identities and reasons; the sentences are in ``report/words``."""
