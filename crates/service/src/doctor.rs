//! `sparkgate doctor`: compares what a gateway needs with what there is. It reads, and changes nothing, but for an object in each of the
//! stores of files and of logs that it deletes again.

mod cluster;
mod creators;
mod database;
mod defaults;
mod files;
mod finding;
mod kueue;
mod lineage;
mod pods;

pub use cluster::{check_admission, check_api_server, check_home, check_namespaces, check_service_accounts};
pub use creators::check_creators;
pub use database::{check_database, check_encryption};
pub use defaults::Defaults;
pub use files::{check_files, check_logs, check_owner};
pub use finding::{Finding, Level};
pub use kueue::check_kueue;
pub use lineage::check_lineage;
pub use pods::check_pods;
