# PyTorch, for launcher kubernetes: docker build -f images/torch.Dockerfile -t dlperf/torch:0.1.0 .
# On GPUs: a BASE with the CUDA libraries and Python 3.11; the wheel of the lock brings its own CUDA.
# Never built by this project's tests: see docs/clusters.md.
ARG BASE=python:3.11-slim
FROM ${BASE}
WORKDIR /dlperf_study
# The packages come first: their layer is kept if only the code changes.
COPY locks ./locks
COPY pyproject.toml ./
RUN pip install --no-cache-dir -c locks/main.txt '.[dev,torch]'
COPY dlperf_study ./dlperf_study
RUN pip install --no-cache-dir --no-deps -e .
