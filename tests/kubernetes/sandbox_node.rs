//! The sandbox's node with an API server: the process, status and log of a pod.

mod deleting;
mod real;
mod restarting;
mod running;
mod spark;
mod starting;
mod world;
