//! Each module of the gateway whose state several tasks share in memory, with its own source, and what must be true in all orders of
//! their steps. Shuttle decides the order: at random by a seed, which a failure prints.
#![allow(dead_code, unreachable_pub)]

extern crate self as sparkgate_store;
extern crate shuttle_std as std;

#[path = "../../crates/store/src/connections/at_hand.rs"]
mod at_hand;
mod check;
#[path = "../../crates/store/src/group_commit.rs"]
mod group_commit;
#[path = "../../crates/store/src/lost_numbers.rs"]
mod lost_numbers;
#[path = "../../crates/core/src/event_feed/hub.rs"]
mod hub;
#[path = "../../crates/core/src/event_feed/ring.rs"]
mod ring;
#[path = "../../crates/http/src/console/shared_reads.rs"]
mod shared_reads;
#[path = "../../crates/common/src/shares.rs"]
mod shares;

use check::Check;

mod of_at_hand;
mod of_group_commit;
mod of_hub;
mod of_shared_reads;
mod of_shares;

pub use lost_numbers::LostNumbers;

/// What the hub needs to know of an event of the store.
#[derive(Debug)]
pub struct Event {
    pub sequence: Option<i64>,
    /// The database's, from 0 on: it is another one after an older backup.
    pub history: u8,
}

/// The hub only keeps it.
#[derive(Debug, Default)]
pub struct Horizon;

fn main() {
    let mut args = std::env::args().skip(1);
    let orders = args.next().map_or(Ok(20_000), |orders| orders.parse()).expect("the number of orders");
    let seed = args.next().map(|seed| seed.parse().expect("the seed"));
    let check = Check { orders, seed };
    of_shares::check(&check);
    of_group_commit::check(&check);
    of_at_hand::check(&check);
    of_hub::check(&check);
    of_shared_reads::check(&check);
}
