//! WAREHOUSE and DISTRICT.

use std::ops::Range;

use plinth_tpcc::{CUSTOMERS, DISTRICTS};

use super::RowSeeds;
use super::line::Line;
use crate::table::Table;

/// Taxes are from 0 to 20 %, in units of 0.0001.
const MOST_TAX: i64 = 2_000;

#[derive(Debug)]
pub(super) struct Warehouses {
    warehouses: u64,
    seeds: RowSeeds,
}

impl Warehouses {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds) -> Self {
        Self { warehouses, seeds }
    }
}

impl Table for Warehouses {
    fn name(&self) -> &str {
        "warehouse"
    }

    fn rows(&self) -> u64 {
        self.warehouses
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(row + 1).letters(6, 10).address();
            line.decimal(0, MOST_TAX, 10_000).text("300000.00").end();
        }
    }
}

#[derive(Debug)]
pub(super) struct Districts {
    warehouses: u64,
    seeds: RowSeeds,
}

impl Districts {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds) -> Self {
        Self { warehouses, seeds }
    }
}

impl Table for Districts {
    fn name(&self) -> &str {
        "district"
    }

    fn rows(&self) -> u64 {
        self.warehouses * DISTRICTS
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(row / DISTRICTS + 1).number(row % DISTRICTS + 1);
            line.letters(6, 10).address().decimal(0, MOST_TAX, 10_000);
            line.text("30000.00").number(CUSTOMERS + 1).end();
        }
    }
}
