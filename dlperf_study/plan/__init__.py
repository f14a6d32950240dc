"""The configurations of a study on one cluster, in order, each with its baseline and reference."""
