"""Words that every room uses: errors, paths, writing, registries, terminal. Standard library, numpy and rich only."""
