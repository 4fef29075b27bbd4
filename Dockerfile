# The gateway alone: no shell, no Java, no Spark. `docker build -t sparkgate .`

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build

# For jemalloc.
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*

# The dependencies first, with empty crates around them: this layer is built again only when they change.
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY bench/Cargo.toml bench/
COPY crates/access/Cargo.toml crates/access/
COPY crates/admission/Cargo.toml crates/admission/
COPY crates/client/Cargo.toml crates/client/
COPY crates/cluster/Cargo.toml crates/cluster/
COPY crates/policy/Cargo.toml crates/policy/
COPY crates/sandbox/Cargo.toml crates/sandbox/
COPY crates/spark/Cargo.toml crates/spark/
COPY crates/store/Cargo.toml crates/store/
COPY crates/submission/Cargo.toml crates/submission/
COPY crates/testing/Cargo.toml crates/testing/
RUN for crate in . bench crates/*; do mkdir -p $crate/src && touch $crate/src/lib.rs; done \
    && echo 'fn main() {}' | tee src/main.rs > bench/src/main.rs \
    && cargo build --release --locked --package sparkgate \
    && rm -r src crates

COPY migrations migrations
COPY crates crates
COPY src src
# Cargo goes by the time of change, and the copied files may be older than the empty crates.
RUN find src crates -name '*.rs' -exec touch {} + && cargo build --release --locked --package sparkgate

# The C library, CA certificates for a Postgres or a cluster behind TLS, and nothing else.
FROM gcr.io/distroless/cc-debian12
COPY --from=build /build/target/release/sparkgate /usr/local/bin/sparkgate
# By number, so that Kubernetes' runAsNonRoot can tell that it isn't root.
USER 65532:65532
EXPOSE 6066
ENTRYPOINT ["/usr/local/bin/sparkgate"]
CMD ["serve"]
