# PaddlePaddle, for launcher kubernetes: docker build -f images/paddle.Dockerfile -t dlperf/paddle:0.1.0 .
# On GPUs: a BASE with CUDA and Python 3.11, and PADDLE="paddlepaddle-gpu==3.0.0 --extra-index-url …" with the index that
# PaddlePaddle's installation guide names for this CUDA. Never built by this project's tests: see docs/clusters.md.
ARG BASE=python:3.11-slim
FROM ${BASE}
ARG PADDLE=
WORKDIR /dlperf_study
# The packages come first: their layer is kept if only the code changes.
COPY locks ./locks
COPY pyproject.toml ./
RUN pip install --no-cache-dir -c locks/main.txt '.[dev]'
RUN if [ -n "${PADDLE}" ]; then pip uninstall -y paddlepaddle && pip install --no-cache-dir ${PADDLE}; fi
COPY dlperf_study ./dlperf_study
RUN pip install --no-cache-dir --no-deps -e .
