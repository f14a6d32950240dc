"""Answers to pages: style, tables, figures, HTML."""
