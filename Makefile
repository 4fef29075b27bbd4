# Thin names for what scripts/ and cargo do.
.DEFAULT_GOAL := help
.PHONY: help demo dev test postgres-versions simulate crash answers parity bench check deny openapi properties allocations fmt

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build, start everything on this machine, run a real Spark job, show its outcome
	@scripts/demo

dev: ## the gateway on 127.0.0.1:6066 with a private Postgres and the sandbox cluster, until Ctrl-C
	@scripts/dev

test: ## all tests, against real parts; ARGS go to cargo test: make test ARGS="--test layers"
	@scripts/test $(ARGS)

postgres-versions: ## the tests of the store on Postgres 14, 16, 17 and 18, fetched through Maven; ARGS="16.10.0" for one
	@scripts/postgres-versions $(ARGS)

crash: ## kill everything again and again while 10,000 jobs run; ARGS="--jobs 1000 --kills 50 --seed 7"
	@scripts/crash $(ARGS)

answers: ## compare 100,000 replies with the database under faults; ARGS="--requests 5000 --seed 7"
	@scripts/answers $(ARGS)

parity: ## ask the real spark-submits again (tests/parity/recorded); ARGS="--case memory", "--generate 100", … compare only
	@scripts/parity $(ARGS)

bench: ## measure everything on this machine beside its baselines; ARGS="accept --runs 5", "launch --quick"
	@scripts/bench $(ARGS)

simulate: ## a million histories of the engine under faults, from seeds; ARGS="--histories 5000000", "--seed S", "--replay S"
	@scripts/simulate $(ARGS)

check: ## formatting, clippy and rustdoc, warnings denied
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

deny: ## duplicate crates, licences and sources of the dependencies
	@scripts/deny

openapi: ## write the API description to openapi/
	cargo run --quiet -- openapi > openapi/sparkgate.json.new
	mv openapi/sparkgate.json.new openapi/sparkgate.json

properties: ## write docs/properties.md from the table in src/spark/keys
	SPARKGATE_WRITE_DOCS=1 cargo test --quiet --test properties

allocations: ## write what a submission costs in allocations, statements and calls to tests/allocations/expected.json
	SPARKGATE_WRITE_ALLOCATIONS=1 scripts/test --test allocations

fmt: ## format the code
	cargo fmt --all
