//! ORDER_LINE: from 5 to 15 rows for each order, so that which order a row belongs to has to be looked up.

use std::ops::Range;
use std::sync::OnceLock;

use plinth_tpcc::{DISTRICTS, FIRST_UNDELIVERED, ITEMS};

use super::RowSeeds;
use super::line::Line;
use super::orders::{LineCounts, OF_DISTRICT, append_entered};
use crate::table::Table;

/// Orders whose lines are counted together.
const ORDERS_AT_ONCE: u64 = 250;

#[derive(Debug)]
pub(super) struct OrderLines {
    warehouses: u64,
    seeds: RowSeeds,
    counts: LineCounts,
    /// The first row of every 250 orders, and at the end the number of rows. Made when it is first needed, since every
    /// order has to be looked at.
    firsts: OnceLock<Vec<u64>>,
}

impl OrderLines {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds, counts: LineCounts) -> Self {
        Self {
            warehouses,
            seeds,
            counts,
            firsts: OnceLock::new(),
        }
    }

    fn firsts(&self) -> &[u64] {
        self.firsts.get_or_init(|| {
            let groups = self.warehouses * DISTRICTS * OF_DISTRICT / ORDERS_AT_ONCE;
            let mut firsts = Vec::with_capacity(groups as usize + 1);
            let mut sum = 0;
            for group in 0..groups {
                firsts.push(sum);
                let orders = group * ORDERS_AT_ONCE..(group + 1) * ORDERS_AT_ONCE;
                sum += orders.map(|order| self.counts.of(order)).sum::<u64>();
            }
            firsts.push(sum);
            firsts
        })
    }

    /// The row of the order that has this line, and the line's place in it, from 0 on.
    fn find(&self, row: u64) -> (u64, u64) {
        let firsts = self.firsts();
        let group = firsts.partition_point(|&first| first <= row) - 1;
        let mut order = group as u64 * ORDERS_AT_ONCE;
        let mut left = row - firsts[group];
        loop {
            let count = self.counts.of(order);
            if left < count {
                return (order, left);
            }
            left -= count;
            order += 1;
        }
    }
}

impl Table for OrderLines {
    fn name(&self) -> &str {
        "order_line"
    }

    fn rows(&self) -> u64 {
        self.firsts().last().copied().unwrap_or_default()
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        if rows.is_empty() {
            return;
        }
        let (mut order_row, mut place) = self.find(rows.start);
        let mut count = self.counts.of(order_row);
        for row in rows {
            if place == count {
                (order_row, place) = (order_row + 1, 0);
                count = self.counts.of(order_row);
            }
            place += 1;
            let (district, order) = (order_row / OF_DISTRICT, order_row % OF_DISTRICT + 1);
            let warehouse = district / DISTRICTS + 1;
            let is_delivered = order < FIRST_UNDELIVERED;
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(warehouse).number(district % DISTRICTS + 1);
            line.number(order).number(place);
            line.drawn(1, ITEMS.cast_signed()).number(warehouse);
            if is_delivered {
                line.field(|out| append_entered(order, out));
            } else {
                line.null();
            }
            line.number(5);
            if is_delivered {
                line.text("0.00");
            } else {
                line.decimal(1, 999_999, 100);
            }
            line.letters(24, 24).end();
        }
    }
}
