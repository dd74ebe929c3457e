//! What the population and the transactions of the TPC-C-derived workload share: numbers of rows, NURand and its
//! constants, last names, random texts. Pure; numbers of clauses are those of the TPC-C specification, revision 5.11.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod nurand;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;

pub use nurand::{Constants, Nurand};
pub use text::{append_last_name, append_text};

/// Items, and rows of stock of each warehouse.
pub const ITEMS: u64 = 100_000;
/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;
/// Customers of a district, and orders that it has at first.
pub const CUSTOMERS: u64 = 3_000;
/// Orders from this number on have not been delivered at first.
pub const FIRST_UNDELIVERED: u64 = 2_101;
/// Last names.
pub const LAST_NAMES: u64 = 1_000;
/// Fewest lines of an order.
pub const FEWEST_LINES: u64 = 5;
/// Most lines of an order.
pub const MOST_LINES: u64 = 15;

/// Spreads `number` over all 64-bit numbers: the finalizer of splitmix64, a bijection.
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut value = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The number from 0 to `values` - 1 that stands at `random` of all 64-bit numbers, each as likely as any other but for a
/// difference of less than `values` in 2^64.
#[must_use]
pub fn scaled(random: u64, values: u64) -> u64 {
    ((u128::from(random) * u128::from(values)) >> 64) as u64
}
