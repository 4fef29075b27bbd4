//! Spark's REST protocol as clients see it: the router's answers compared with those of real Spark masters.

mod edges;
mod replay;
