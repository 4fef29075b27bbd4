//! workers
