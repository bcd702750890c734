# The server's image. On a GPU: --build-arg EXTRAS=server,keras,gpu (CUDA's libraries come with CuPy, the driver from the host).
# Any Debian or Ubuntu base does, with Python 3.11 or newer or without Python.
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
# The distribution's own security updates are wanted, so its packages are not pinned.
# hadolint ignore=DL3008
RUN command -v python3 >/dev/null \
    || { apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*; }
# The C libraries of plans and of kernels are built once, here.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/teletape
WORKDIR /src
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY engine/ engine/
COPY wire/ wire/
COPY client/ client/
COPY server/ server/
COPY docs/ docs/
ARG EXTRAS=server,keras
RUN /opt/teletape/bin/python -m pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM ${BASE}
# hadolint ignore=DL3008
RUN command -v python3 >/dev/null \
    || { apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*; }
# Graphviz draws the graphs of tapes.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends graphviz && rm -rf /var/lib/apt/lists/*
# A volume for the folder for data gets this folder's owner; without --data-dir it stays empty.
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin teletape \
    && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/teletape
COPY --from=build /opt/teletape /opt/teletape
ENV PATH=/opt/teletape/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    CUPY_CACHE_DIR=/tmp/cupy \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    TELETAPE_HOST=0.0.0.0 \
    TELETAPE_PORT=8470
USER 10001
EXPOSE 8470
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, ssl, urllib.request as r; r.build_opener(r.ProxyHandler({}), r.HTTPSHandler(context=ssl._create_unverified_context())).open(('https' if os.environ.get('TELETAPE_TLS_CERTIFICATE') else 'http') + '://127.0.0.1:' + os.environ['TELETAPE_PORT'] + '/v1/health', timeout=4)"]
ENTRYPOINT ["teletape"]
CMD ["serve"]
