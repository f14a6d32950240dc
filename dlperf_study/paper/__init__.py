"""What a paper needs of a study: figures, tables, every number as a macro, methods, and what to cite."""
