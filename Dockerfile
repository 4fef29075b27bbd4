# The gateway alone: no shell, no Java, no Spark. `docker build -t sparkgate .`, or `scripts/image`, which needs no Docker daemon.
# The same commit, SOURCE_DATE_EPOCH and images below give the same image. A release names them by their digests: NAME@sha256:….
ARG BUILD_IMAGE=docker.io/library/rust:1.95-slim-bookworm
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12
# For the stage `sandbox` alone.
ARG SPARK_IMAGE=docker.io/apache/spark:4.3.0

# The manifests, with empty crates around them: the layer of the dependencies is built again only when these change.
FROM ${BUILD_IMAGE} AS manifests
WORKDIR /build
COPY . .
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock ! -path './.cargo/*' -delete \
    && for crate in . bench check crates/*; do mkdir -p $crate/src && touch $crate/src/lib.rs; done \
    && echo 'fn main() {}' | tee src/main.rs check/src/main.rs > bench/src/main.rs

FROM ${BUILD_IMAGE} AS build
ARG SOURCE_DATE_EPOCH=0
WORKDIR /build

# make is for jemalloc. cargo-auditable puts the list of dependencies into the program, and auditable2cdx reads it from there.
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
RUN cargo install --locked --root /opt/tools cargo-auditable@0.7.7 auditable2cdx@0.1.0
ENV PATH=/opt/tools/bin:${PATH}

COPY --from=manifests /build ./
# jemalloc is built for one size of pages, and works with smaller ones: kernels for arm64 have pages of up to 64 KiB.
RUN [ "$(uname -m)" != aarch64 ] || printf 'JEMALLOC_SYS_WITH_LG_PAGE = "16"\n' >> .cargo/config.toml
RUN cargo auditable build --profile published --locked --features jemalloc --package sparkgate && rm -r src crates

COPY migrations migrations
COPY crates crates
COPY src src
# Cargo goes by the time of change, and the copied files may be older than the empty crates.
RUN find src crates -name '*.rs' -exec touch {} + \
    && cargo auditable build --profile published --locked --features jemalloc --package sparkgate \
    && auditable2cdx target/published/sparkgate > sparkgate.cdx.json

# The C library, CA certificates for a Postgres or a cluster behind TLS, and nothing else.
FROM ${BASE_IMAGE} AS gateway
COPY --from=build /build/target/published/sparkgate /usr/local/bin/sparkgate
# What the program is made of (CycloneDX). What the base is made of is in /var/lib/dpkg/status.d.
COPY --from=build /build/sparkgate.cdx.json /usr/share/sbom/sparkgate.cdx.json
LABEL org.opencontainers.image.title=sparkgate \
      org.opencontainers.image.description="An HTTP gateway for Apache Spark on Kubernetes" \
      org.opencontainers.image.licenses=Apache-2.0
# By number, so that Kubernetes' runAsNonRoot can tell that it isn't root.
USER 65532:65532
EXPOSE 6066
ENTRYPOINT ["/usr/local/bin/sparkgate"]
CMD ["serve"]

# The sandbox of docker-compose.yml: the program beside a real Spark, which its pods run.
FROM ${SPARK_IMAGE} AS sandbox
COPY --from=gateway /usr/local/bin/sparkgate /usr/local/bin/sparkgate
USER 185:0
ENTRYPOINT ["/usr/local/bin/sparkgate"]
CMD ["sandbox", "--dir", "/tmp/sandbox"]

# What is built without `--target`.
FROM gateway
