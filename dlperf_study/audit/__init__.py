"""The audit of tables of results: every number is computed again from the numbers next to it and from known limits.

The audit corrects nothing and drops nothing: each diagnostic gives its computation and possible explanations.
"""
