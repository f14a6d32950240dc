# Horovod and PyTorch, for launcher kubernetes: docker build -f images/horovod.Dockerfile -t dlperf/horovod:0.1.0 .
# On GPUs: a BASE with Python 3.11, NCCL with its headers and the CUDA toolkit of PyTorch's own version, and
# HOROVOD_GPU_OPERATIONS=NCCL. Never built by this project's tests: see docs/clusters.md.
ARG BASE=python:3.11-slim
FROM ${BASE}
ARG HOROVOD_GPU_OPERATIONS
RUN apt-get update && apt-get install -y --no-install-recommends g++ make git && rm -rf /var/lib/apt/lists/*
WORKDIR /dlperf_study
# The packages come first: their layer is kept if only the code changes.
COPY locks ./locks
COPY pyproject.toml ./
RUN pip install --no-cache-dir -c locks/main.txt '.[dev]'
COPY tools ./tools
COPY dlperf_study ./dlperf_study
RUN pip install --no-cache-dir --no-deps -e . && python -m tools.install horovod
