"""Results of studies as objects of pandas frames and figures: the public names of the package."""
