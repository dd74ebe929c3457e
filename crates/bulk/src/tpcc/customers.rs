//! CUSTOMER and HISTORY.

use std::ops::Range;

use plinth_tpcc::{CUSTOMERS, DISTRICTS, LAST_NAMES, Nurand, append_last_name};

use super::line::Line;
use super::{LOADED_AT, RowSeeds};
use crate::table::Table;

/// Customers of a warehouse.
const OF_WAREHOUSE: u64 = DISTRICTS * CUSTOMERS;

/// The warehouse, the district and the customer of a row.
fn customer(row: u64) -> [u64; 3] {
    [
        row / OF_WAREHOUSE + 1,
        row / CUSTOMERS % DISTRICTS + 1,
        row % CUSTOMERS + 1,
    ]
}

#[derive(Debug)]
pub(super) struct Customers {
    warehouses: u64,
    seeds: RowSeeds,
    /// Numbers of last names, but of the first customers of a district, who have each name once.
    names: Nurand,
}

impl Customers {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds, names: Nurand) -> Self {
        Self {
            warehouses,
            seeds,
            names,
        }
    }
}

impl Table for Customers {
    fn name(&self) -> &str {
        "customer"
    }

    fn rows(&self) -> u64 {
        self.warehouses * OF_WAREHOUSE
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let [warehouse, district, number] = customer(row);
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(warehouse).number(district).number(number);
            line.letters(8, 16).text("OE");
            let name = if number <= LAST_NAMES {
                number - 1
            } else {
                self.names.draw(line.random()).cast_unsigned()
            };
            line.field(|out| append_last_name(name, out)).address();
            line.digits(10_u64.pow(16)).text(LOADED_AT);
            let has_bad_credit = line.draw(1, 10) == 1;
            line.text(if has_bad_credit { "BC" } else { "GC" });
            line.text("50000.00").decimal(0, 5_000, 10_000);
            line.text("-10.00").text("10.00").number(1).number(0);
            line.letters(300, 500).end();
        }
    }
}

#[derive(Debug)]
pub(super) struct History {
    warehouses: u64,
    seeds: RowSeeds,
}

impl History {
    pub(super) fn new(warehouses: u64, seeds: RowSeeds) -> Self {
        Self { warehouses, seeds }
    }
}

impl Table for History {
    fn name(&self) -> &str {
        "history"
    }

    /// One for each customer.
    fn rows(&self) -> u64 {
        self.warehouses * OF_WAREHOUSE
    }

    fn has_even_rows(&self) -> bool {
        false
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        for row in rows {
            let [warehouse, district, number] = customer(row);
            let mut line = Line::new(out, self.seeds.of(row));
            line.number(number).number(district).number(warehouse);
            line.number(district).number(warehouse);
            line.text(LOADED_AT).text("10.00").letters(12, 24).end();
        }
    }
}
