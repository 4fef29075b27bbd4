# Short names for the scripts in scripts/ and for cargo commands.
.DEFAULT_GOAL := help
.PHONY: help demo dev test postgres-versions simulate prove interleavings fuzz crash answers mutants parity python bench check deny image site release compose cluster api-compatibility openapi properties metrics-docs settings allocations house fmt

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build and start everything on this machine, run a real Spark job, show its outcome
	@scripts/demo

dev: ## the gateway on 127.0.0.1:6066 with a private Postgres and the sandbox cluster, until Ctrl-C; ARGS="--require-token"
	@scripts/dev $(ARGS)

test: ## all tests, with real components; ARGS go to cargo test: make test ARGS="--test pure"
	@scripts/test $(ARGS)

postgres-versions: ## the store's tests on Postgres 14, 16, 17 and 18, fetched through Maven; ARGS="16.10.0" for one version
	@scripts/postgres-versions $(ARGS)

crash: ## kill all parts repeatedly while 10,000 jobs run; ARGS="--jobs 1000 --kills 50 --seed 7"
	@scripts/crash $(ARGS)

answers: ## compare 100,000 replies with the database under faults; ARGS="--requests 5000 --seed 7"
	@scripts/answers $(ARGS)

mutants: ## change the code in small ways and print what no test notices; ARGS="--minutes 30 leases", ARGS=--named for the table
	@scripts/mutants $(ARGS)

parity: ## record the answers of the real spark-submits again (tests/parity/recorded); ARGS="--case memory", "--generate 100", … only compare
	@scripts/parity $(ARGS)

python: ## check, build and test the Python packages in clients/; ARGS="generate" writes what is derived from the API, "check", "test -k logs"
	@scripts/python-clients $(ARGS)

bench: ## run all benchmarks on this machine, with their baselines; ARGS="accept --runs 5", "launch --quick"
	@scripts/bench $(ARGS)

simulate: ## simulate a million histories of the engine under faults, from seeds; ARGS="--histories 5000000", "--seed S", "--replay S"
	@scripts/simulate $(ARGS)

prove: ## visit all states of a model around the real engine, within bounds; ARGS="--faults 2 --only 2,7", "--seeds" seeds errors that it has to find
	@scripts/prove $(ARGS)

interleavings: ## run what tasks share in memory in many orders of their steps (shuttle); ARGS="200000" for more of them
	@scripts/interleavings $(ARGS)

fuzz: ## fuzz the parsers with libFuzzer, a million runs each; ARGS="--runs 10000000 request jwt", "--seconds 60", "--merge"
	@scripts/fuzz $(ARGS)

check: ## the fast lane: formatting, clippy, rustdoc, unit tests, the store's tests
	@scripts/check

deny: ## check the dependencies: duplicate crates, licences, sources, advisories
	@scripts/deny

image: ## the container image with its SBOM, without a Docker daemon; ARGS="--from-debian", "--twice" compares two builds
	@scripts/image $(ARGS)

site: ## the documentation as a site, in target/site
	@scripts/site $(ARGS)

release: ## all that a release publishes, in target/dist; ARGS="--from-debian" needs no registry of images, ARGS="chart site" builds parts
	@scripts/release $(ARGS)

compose: ## try docker-compose.yml with podman, as root; ARGS="--gateway ARCHIVE --spark ARCHIVE --kubeconfig FILE"
	@scripts/compose-test $(ARGS)

cluster: ## try the chart on a cluster: install, upgrade and rollback under load, uninstall; ARGS as `scripts/cluster-test --help` says
	@scripts/cluster-test $(ARGS)

api-compatibility: ## compare the API with that of the last release; ARGS="v1.2.3", ARGS=--changelog lists all changes
	@scripts/api-compatibility $(ARGS)

openapi: ## write the API description to openapi/
	cargo run --quiet -- openapi > openapi/sparkgate.json.new
	mv openapi/sparkgate.json.new openapi/sparkgate.json

properties: ## write docs/reference/properties.md from the table in crates/spark/src/keys
	SPARKGATE_WRITE_DOCS=1 cargo test --quiet --test pure properties::

metrics-docs: ## write docs/reference/metrics.md from the list in crates/metrics/src/catalogue.rs
	SPARKGATE_WRITE_DOCS=1 cargo test --quiet --test program the_metrics_page

settings: ## write docs/reference/settings.md and the schema of the chart's settings from src/app/settings
	SPARKGATE_WRITE_DOCS=1 cargo test --quiet --lib app::describe

allocations: ## write the costs of a submission (allocations, statements, calls) to tests/allocations/expected.json
	SPARKGATE_WRITE_ALLOCATIONS=1 scripts/test --test allocations

house: ## print the sizes of crates, knots of imports, long functions, names, tests and pages
	@scripts/house

fmt: ## format the code
	cargo fmt --all
