//! The commands of the client as a user runs them, against a fake gateway whose answers and faults each test defines.
//! (`tests/program/` tests them with the real one.)

mod issuer;
mod played;
mod run;
mod user;

mod audit;
mod completions;
mod connect;
mod contexts;
mod events;
mod faults;
mod files;
mod kill;
mod list;
mod login;
mod logs;
mod names;
mod output;
mod queues;
mod renewal;
mod rerun;
mod show;
mod submit;
mod terminal;
mod tokens;
mod usage;
mod wait;
mod watch;
mod webhooks;
