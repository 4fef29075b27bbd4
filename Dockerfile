# The gateway alone: no shell, no Java, no Spark. `docker build -t sparkgate .`

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build

# For jemalloc.
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*

# The dependencies first, with an empty crate around them: this layer is built again only when they change.
COPY Cargo.toml Cargo.lock build.rs ./
COPY .cargo .cargo
COPY bench/Cargo.toml bench/
RUN mkdir -p src migrations bench/src && echo 'fn main() {}' | tee src/main.rs > bench/src/main.rs && touch src/lib.rs \
    && cargo build --release --locked \
    && rm -r src

COPY src src
COPY migrations migrations
# Cargo goes by the time of change, and the copied files may be older than the empty crate.
RUN touch src/main.rs src/lib.rs && cargo build --release --locked

# The C library, CA certificates for a Postgres or a cluster behind TLS, and nothing else.
FROM gcr.io/distroless/cc-debian12
COPY --from=build /build/target/release/sparkgate /usr/local/bin/sparkgate
# By number, so that Kubernetes' runAsNonRoot can tell that it isn't root.
USER 65532:65532
EXPOSE 6066
ENTRYPOINT ["/usr/local/bin/sparkgate"]
CMD ["serve"]
