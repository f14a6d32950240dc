"""The audit recomputes every number of a table of results.

The audit corrects nothing and drops nothing: each diagnostic gives its computation and possible explanations.
"""
