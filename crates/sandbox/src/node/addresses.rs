//! Allocates a separate address in 127.0.0.0/8 for every pod, so that jobs don't compete for Spark's fixed ports.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hosts are numbered from 127.1.0.0 up to 127.254.255.255.
const FIRST: u32 = u32::from_be_bytes([127, 1, 0, 0]);
const LAST: u32 = u32::from_be_bytes([127, 254, 255, 255]);

/// The next address to try, and the addresses in use.
#[derive(Debug)]
pub(super) struct Addresses(Mutex<(u32, HashSet<u32>)>);

impl Addresses {
    /// Starts at a random address, so that two nodes on one machine, or a node and the processes of its predecessor, don't
    /// collide.
    pub(super) fn new() -> Self {
        let [a, b, c, d, ..] = *uuid::Uuid::new_v4().as_bytes();
        Self::starting_at(u32::from_be_bytes([a, b, c, d]) % (LAST - FIRST))
    }

    fn starting_at(offset: u32) -> Self {
        Self(Mutex::new((FIRST + offset, HashSet::new())))
    }

    /// Allocates the next free address. Returned addresses are used again only after all others.
    pub(super) fn take(&self) -> Ipv4Addr {
        let mut guard = self.lock();
        let (next, used) = &mut *guard;
        loop {
            let candidate = *next;
            *next = if candidate >= LAST { FIRST } else { candidate + 1 };
            // .0 and .255 resemble a network and a broadcast address; some tools refuse them.
            let plain = !matches!(candidate & 0xff, 0 | 0xff);
            if plain && used.insert(candidate) {
                return Ipv4Addr::from(candidate);
            }
        }
    }

    pub(super) fn give_back(&self, address: Ipv4Addr) {
        self.lock().1.remove(&u32::from(address));
    }

    fn lock(&self) -> MutexGuard<'_, (u32, HashSet<u32>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_never_end_with_0_or_255() {
        let addresses = Addresses::starting_at(0);
        let taken: Vec<_> = (0..300).map(|_| addresses.take()).collect();
        assert_eq!(taken[0], Ipv4Addr::new(127, 1, 0, 1));
        assert_eq!(taken[254], Ipv4Addr::new(127, 1, 1, 1));
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 300);
    }

    #[test]
    fn allocation_wraps_around_and_skips_addresses_in_use() {
        let addresses = Addresses::starting_at(LAST - FIRST - 1);
        let last = addresses.take();
        assert_eq!(last, Ipv4Addr::new(127, 254, 255, 254));
        assert_eq!(addresses.take(), Ipv4Addr::new(127, 1, 0, 1));
        addresses.give_back(last);
        assert_eq!(addresses.take(), Ipv4Addr::new(127, 1, 0, 2));
    }
}
