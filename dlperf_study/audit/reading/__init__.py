"""Tables as people write them: from a file to rows whose columns have the names of this package."""
