"""Labelled images on disk: the formats they are kept in, what is wrong with them, and a small set of photographs."""
