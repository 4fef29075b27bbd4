//! From a request to a driver: the options of a submission, the operator's defaults and files, and the Spark lines of a gateway.

pub mod options;
pub mod settings;
pub mod spark_lines;
pub mod submitter;
