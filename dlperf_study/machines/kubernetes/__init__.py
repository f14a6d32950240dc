"""What launcher ``kubernetes`` is made of: manifests, calls of the API, and what runs inside the pods."""
