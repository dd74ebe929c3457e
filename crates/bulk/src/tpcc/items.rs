//! ITEM and STOCK.

use std::ops::Range;

use plinth_tpcc::{DISTRICTS, ITEMS};

use super::RowSeeds;
use super::line::Line;
use crate::table::Table;

#[derive(Debug)]
pub(super) struct Items {
    seeds: RowSeeds,
}

impl Items {
    pub(super) fn new(seeds: RowSeeds) -> Self {
        Self { seeds }
    }
}

impl Table for Items {
    fn name(&self) -> &str {
        "item"
    }

    fn rows(&self) -> u64 {
        ITEMS
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(row + 1).drawn(1, 10_000).letters(14, 24);
            line.decimal(100, 10_000, 100).data().end();
        }
    }
}

#[derive(Debug)]
pub(super) struct Stock {
    warehouses: u64,
    seeds: RowSeeds,
}

impl Stock {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds) -> Self {
        Self { warehouses, seeds }
    }
}

impl Table for Stock {
    fn name(&self) -> &str {
        "stock"
    }

    fn rows(&self) -> u64 {
        self.warehouses * ITEMS
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(row / ITEMS + 1).number(row % ITEMS + 1);
            line.drawn(10, 100);
            line.number(0).number(0).number(0);
            for _ in 0..DISTRICTS {
                line.letters(24, 24);
            }
            line.data().end();
        }
    }
}
