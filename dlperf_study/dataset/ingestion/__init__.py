"""Printed logs that were read become the runs of a dataset."""
