# Plinth with PostgreSQL 18 and the tools of file systems and I/O probes. `make dist` builds the wheel, then:
#   docker build -t plinth .
#   docker run --rm --shm-size 4g -v "$PWD:/work" plinth run experiments/ramdisk.toml
# What it can do with --privileged and without: docs/install.md.
FROM python:3.13-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends btrfs-progs e2fsprogs fio kmod mount openssh-client openssl util-linux xfsprogs \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,source=dist,target=/dist \
    pip install --no-cache-dir --only-binary :all: "$(ls /dist/pgplinth-*_"$(uname -m)".whl)[serve]" \
    && useradd --create-home --uid 1000 plinth \
    && useradd --system postgres
# Data directories and journals go to the mounted folder, which is what is to be measured.
ENV PLINTH_STATE_DIR=/work/.plinth
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["plinth"]
CMD ["--help"]
