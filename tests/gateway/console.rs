//! The console: on the real router and a real Postgres, and in a real Chromium, whose program `SPARKGATE_CHROMIUM` names. `SPARKGATE_AXE`
//! names the file of axe-core. The cluster
//! is one in memory without a node, so submissions stay queued; the tests write the rows of others themselves.

mod access;
mod accessible;
mod dashboard;
mod failure;
mod hostile;
mod in_browser;
mod issuer;
mod key_sign_in;
mod pages;
mod pictures;
mod queues;
mod rerun;
mod rows;
mod sign_in;
mod sign_in_browser;
mod site;
mod spark_ui;
mod spark_ui_origin;
mod tasks;
