//! The nine tables of the TPC-C-derived workload, as clause 4.3.3.1 of the specification populates them.
//!
//! Each row is a function of the seed, its table and its number. Rows stand in the order of their keys, whose first column is
//! the warehouse, so that what one warehouse has is together in each table.

mod customers;
mod items;
mod line;
mod order_lines;
mod orders;
mod warehouses;

use plinth_config::ConfigError;
use plinth_script::Prng;
use plinth_tpcc::{Constants, mix};
use serde::Deserialize;

use crate::table::Table;
use customers::{Customers, History};
use items::{Items, Stock};
use order_lines::OrderLines;
use orders::{LineCounts, NewOrders, Orders};
use warehouses::{Districts, Warehouses};

/// Some 9 TB.
const MOST_WAREHOUSES: u64 = 100_000;
/// What is loaded has happened then: rows must not depend on the clock.
const LOADED_AT: &str = "2000-01-01 00:00:00";

/// The tables of the TPC-C-derived workload.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TpccGenerator {
    /// Each with 10 districts of 3,000 customers, and 100,000 rows of stock.
    pub warehouses: u64,
    /// Seed of what is drawn, and of the constants of NURand.
    pub seed: u64,
}

impl TpccGenerator {
    pub(crate) const TRUNCATE: &str = "TRUNCATE warehouse, district, item, customer, history, orders, new_order, \
                                       order_line, stock";

    /// In this order, by which pieces number them.
    pub(crate) fn tables(self) -> Vec<Box<dyn Table>> {
        let warehouses = self.warehouses;
        let seeds = |number| RowSeeds::new(self.seed, number);
        let names = Constants::of_seed(self.seed).last_names_loaded();
        let counts = LineCounts::new(self.seed);
        vec![
            Box::new(Warehouses::new(warehouses, seeds(0))),
            Box::new(Districts::new(warehouses, seeds(1))),
            Box::new(Items::new(seeds(2))),
            Box::new(Customers::new(warehouses, seeds(3), names)),
            Box::new(History::new(warehouses, seeds(4))),
            Box::new(Orders::new(warehouses, seeds(5), counts)),
            Box::new(NewOrders::new(warehouses)),
            Box::new(OrderLines::new(warehouses, seeds(6), counts)),
            Box::new(Stock::new(warehouses, seeds(7))),
        ]
    }

    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        if !(1..=MOST_WAREHOUSES).contains(&self.warehouses) {
            let message = format!(
                "got {}, allowed are 1 to {MOST_WAREHOUSES}",
                self.warehouses
            );
            return Err(ConfigError::new("generator.warehouses", message));
        }
        Ok(())
    }

    /// How many lines the orders of the first `warehouses` have, for each of these numbers, which ascend.
    #[must_use]
    pub fn order_lines(warehouses: &[u64], seed: u64) -> Vec<u64> {
        let counts = LineCounts::new(seed);
        let (mut before, mut sum) = (0, 0);
        let lines = warehouses.iter().map(|&end| {
            sum += counts.sum(before..end);
            before = end;
            sum
        });
        lines.collect()
    }
}

/// The random numbers of the rows of a table.
#[derive(Debug, Clone, Copy)]
struct RowSeeds {
    base: u64,
}

impl RowSeeds {
    fn new(seed: u64, table: u64) -> Self {
        Self {
            base: mix(mix(seed).wrapping_add(table)),
        }
    }

    fn of(self, row: u64) -> Prng {
        Prng::seeded(self.base.wrapping_add(row))
    }
}

#[cfg(test)]
mod tests;
