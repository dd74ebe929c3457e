//! ORDERS and NEW_ORDER.

use std::ops::Range;

use plinth_tpcc::{CUSTOMERS, DISTRICTS, FEWEST_LINES, FIRST_UNDELIVERED, MOST_LINES, mix, scaled};

use super::RowSeeds;
use super::line::{Line, append_padded};
use crate::table::Table;

/// Orders of a district at first: one for each customer.
pub(super) const OF_DISTRICT: u64 = CUSTOMERS;
const UNDELIVERED: u64 = OF_DISTRICT - FIRST_UNDELIVERED + 1;

/// When an order was entered: one each second, so that the day of the load has them all.
pub(super) fn append_entered(order: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"2000-01-01 ");
    append_padded(order / 3_600, 10, out);
    out.push(b':');
    append_padded(order / 60 % 60, 10, out);
    out.push(b':');
    append_padded(order % 60, 10, out);
}

/// How many lines each order has, a function of its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCounts {
    base: u64,
}

impl LineCounts {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            base: RowSeeds::new(seed, 8).base,
        }
    }

    /// From 5 to 15, each as likely as any other.
    pub(super) fn of(self, order_row: u64) -> u64 {
        let random = mix(self.base.wrapping_add(order_row));
        FEWEST_LINES + scaled(random, MOST_LINES - FEWEST_LINES + 1)
    }

    /// Of the orders of some warehouses, which are numbered from 0 on.
    pub(super) fn sum(self, warehouses: Range<u64>) -> u64 {
        let first = |warehouse| warehouse * DISTRICTS * OF_DISTRICT;
        let orders = first(warehouses.start)..first(warehouses.end);
        orders.map(|row| self.of(row)).sum()
    }
}

#[derive(Debug)]
pub(super) struct Orders {
    warehouses: u64,
    seeds: RowSeeds,
    counts: LineCounts,
}

impl Orders {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds, counts: LineCounts) -> Self {
        Self {
            warehouses,
            seeds,
            counts,
        }
    }
}

impl Table for Orders {
    fn name(&self) -> &str {
        "orders"
    }

    fn rows(&self) -> u64 {
        self.warehouses * DISTRICTS * OF_DISTRICT
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let (district, order) = (row / OF_DISTRICT, row % OF_DISTRICT + 1);
            let key = mix(self.seeds.base.wrapping_sub(district + 1));
            let customer = permuted(order - 1, key) + 1;
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(district / DISTRICTS + 1);
            line.number(district % DISTRICTS + 1);
            line.number(order).number(customer);
            if order < FIRST_UNDELIVERED {
                line.drawn(1, 10);
            } else {
                line.null();
            }
            line.number(self.counts.of(row)).number(1);
            line.field(|out| append_entered(order, out)).end();
        }
    }
}

const HALF_BITS: u32 = 6;
const HALF: u64 = (1 << HALF_BITS) - 1;
const ROUNDS: u64 = 8;

/// The place of `number` in the random permutation of the customers of a district that `key` chooses. A Feistel network
/// permutes 4,096 numbers; one that it takes out of the range goes through it again, until it is within.
pub(super) fn permuted(number: u64, key: u64) -> u64 {
    let mut permuted = number;
    loop {
        let (mut left, mut right) = (permuted >> HALF_BITS, permuted & HALF);
        for round in 0..ROUNDS {
            let mixed = mix(key ^ (round << HALF_BITS) ^ right);
            (left, right) = (right, left ^ (mixed & HALF));
        }
        permuted = left << HALF_BITS | right;
        if permuted < CUSTOMERS {
            return permuted;
        }
    }
}

#[derive(Debug)]
pub(super) struct NewOrders {
    warehouses: u64,
}

impl NewOrders {
    pub(super) fn new(warehouses: u64) -> Self {
        Self { warehouses }
    }
}

impl Table for NewOrders {
    fn name(&self) -> &str {
        "new_order"
    }

    fn rows(&self) -> u64 {
        self.warehouses * DISTRICTS * UNDELIVERED
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let district = row / UNDELIVERED;
            let mut line = Line::new(out, plinth_script::Prng::seeded(0));
            line.number(district / DISTRICTS + 1);
            line.number(district % DISTRICTS + 1);
            line.number(row % UNDELIVERED + FIRST_UNDELIVERED).end();
        }
    }
}
