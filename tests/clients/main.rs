//! Third-party clients, and the examples of the documentation: Airflow, pylivy, `PySpark`'s client of Spark Connect, the Python SDK of MCP, schemathesis, a client that is generated from
//! the API's description, and the commands of the pages, all against `sparkgate dev`. `provider` has a real `OpenID` provider.
//!
//! Requires what `make test` provides: `DATABASE_URL`, Postgres' programs, `SPARK_HOME`, curl, and the Python environments
//! `SPARKGATE_AIRFLOW`, `SPARKGATE_API_TOOLS`, `SPARKGATE_PYLIVY`, `SPARKGATE_MCP` and `SPARKGATE_PYSPARK_CLIENT`, Chromium, Java, and `SPARKGATE_KEYCLOAK`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod airflow;
mod closed;
mod connect;
mod described;
mod dev;
mod generated;
mod growth;
mod livy;
mod markdown;
mod mcp;
mod python;
mod recipes;
mod spark_ui;

mod provider;
