//! What terminals enter: clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1 of the specification.

use plinth_script::Prng;
use plinth_script::distributions::uniform;
use plinth_tpcc::{Constants, DISTRICTS, FEWEST_LINES, ITEMS, MOST_LINES};
use serde::Deserialize;

const ORDER_LINES: usize = MOST_LINES as usize;
/// Of customers of a payment or an order status: how many are given by last name.
const BY_NAME_SHARE: f64 = 0.6;
/// No item has this number.
const UNUSED_ITEM: i64 = ITEMS as i64 + 1;

/// Which warehouse a client's transactions are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Home {
    /// Clients take turns, and each stays with its own.
    ByClient,
    /// Drawn for each transaction.
    Uniform,
}

/// How inputs are drawn. All clients have the same constants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    pub(super) constants: Constants,
    pub(super) warehouses: i64,
    pub(super) home: Home,
    pub(super) remote_line_share: f64,
    pub(super) remote_payment_share: f64,
    pub(super) rollback_share: f64,
}

/// What stays the same for a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    pub(super) number: usize,
    warehouse: i64,
    /// Of its stock levels (clause 2.8.1.1).
    district: i64,
}

/// The warehouse, and district of stock levels, of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    warehouse: i64,
    stock_level_district: i64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) item: i64,
    pub(super) supply_warehouse: i64,
    pub(super) quantity: i64,
}

/// An order as it is entered.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewOrderInput {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) customer: i64,
    pub(super) lines: [Line; ORDER_LINES],
    pub(super) count: usize,
    /// Its last line is of an item that there is not.
    pub(super) is_rolled_back: bool,
}

impl NewOrderInput {
    /// Lines of items that there are.
    pub(super) fn valid_lines(&self) -> usize {
        self.count - usize::from(self.is_rolled_back)
    }

    pub(super) fn is_local(&self) -> bool {
        let mut lines = self.lines[..self.count].iter();
        lines.all(|line| line.supply_warehouse == self.warehouse)
    }

    /// Places of the lines in the order in which their stock is changed: by supplying warehouse and item, so that two orders
    /// do not wait for each other's stock in turn. That of an unused item stays the last. Each line keeps the number under
    /// which it was entered.
    pub(super) fn order_of_stock(&self) -> [u8; ORDER_LINES] {
        let mut places = std::array::from_fn(|place| place as u8);
        places[..self.valid_lines()].sort_unstable_by_key(|&place| {
            let line = &self.lines[usize::from(place)];
            (line.supply_warehouse, line.item)
        });
        places
    }
}

/// A customer, by number or by last name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Customer {
    Number(i64),
    /// The name with this number.
    Name(u64),
}

impl Customer {
    /// 0 where only the name is known.
    pub(super) fn number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            Self::Name(_) => 0,
        }
    }

    pub(super) fn is_by_name(self) -> bool {
        matches!(self, Self::Name(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PaymentInput {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) customer_warehouse: i64,
    pub(super) customer_district: i64,
    pub(super) customer: Customer,
    pub(super) amount_cents: i64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OrderStatusInput {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) customer: Customer,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveryInput {
    pub(super) warehouse: i64,
    pub(super) carrier: i64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StockLevelInput {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) threshold: i64,
}

/// What a terminal enters, by the type of the transaction.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a client, and a box would be allocated for each transaction"
)]
pub(super) enum Input {
    NewOrder(NewOrderInput),
    Payment(PaymentInput),
    OrderStatus(OrderStatusInput),
    Delivery(DeliveryInput),
    StockLevel(StockLevelInput),
}

impl Draws {
    /// The input of a transaction of this type, in the order of the types.
    pub(super) fn input(&self, transaction: usize, at: At, random: &mut Prng) -> Input {
        match transaction {
            0 => Input::NewOrder(self.new_order(at, random)),
            1 => Input::Payment(self.payment(at, random)),
            2 => Input::OrderStatus(self.order_status(at, random)),
            3 => Input::Delivery(self.delivery(at, random)),
            _ => Input::StockLevel(self.stock_level(at, random)),
        }
    }

    /// The client's own place: warehouses take turns, then their districts.
    pub(super) fn terminal(&self, number: usize) -> Terminal {
        let client = number as i64;
        Terminal {
            number,
            warehouse: client % self.warehouses + 1,
            district: client / self.warehouses % DISTRICTS as i64 + 1,
        }
    }

    pub(super) fn home(&self, terminal: &Terminal, random: &mut Prng) -> At {
        match self.home {
            Home::ByClient => At {
                warehouse: terminal.warehouse,
                stock_level_district: terminal.district,
            },
            Home::Uniform => At {
                warehouse: uniform(random, 1, self.warehouses),
                stock_level_district: district(random),
            },
        }
    }

    fn new_order(&self, at: At, random: &mut Prng) -> NewOrderInput {
        let district = district(random);
        let customer = self.constants.customers().draw(random);
        let count = uniform(random, FEWEST_LINES as i64, MOST_LINES as i64) as usize;
        let is_rolled_back = is_chosen(self.rollback_share, random);
        let mut lines = [Line::default(); ORDER_LINES];
        for line in &mut lines[..count] {
            line.item = self.constants.items().draw(random);
            line.supply_warehouse = if is_chosen(self.remote_line_share, random) {
                self.other_warehouse(at.warehouse, random)
            } else {
                at.warehouse
            };
            line.quantity = uniform(random, 1, 10);
        }
        if is_rolled_back {
            lines[count - 1].item = UNUSED_ITEM;
        }
        NewOrderInput {
            warehouse: at.warehouse,
            district,
            customer,
            lines,
            count,
            is_rolled_back,
        }
    }

    fn payment(&self, at: At, random: &mut Prng) -> PaymentInput {
        let own = district(random);
        let (customer_warehouse, customer_district) =
            if is_chosen(self.remote_payment_share, random) {
                let other = self.other_warehouse(at.warehouse, random);
                (other, district(random))
            } else {
                (at.warehouse, own)
            };
        PaymentInput {
            warehouse: at.warehouse,
            district: own,
            customer_warehouse,
            customer_district,
            customer: self.customer(random),
            amount_cents: uniform(random, 100, 500_000),
        }
    }

    fn order_status(&self, at: At, random: &mut Prng) -> OrderStatusInput {
        OrderStatusInput {
            warehouse: at.warehouse,
            district: district(random),
            customer: self.customer(random),
        }
    }

    fn delivery(&self, at: At, random: &mut Prng) -> DeliveryInput {
        DeliveryInput {
            warehouse: at.warehouse,
            carrier: uniform(random, 1, 10),
        }
    }

    fn stock_level(&self, at: At, random: &mut Prng) -> StockLevelInput {
        StockLevelInput {
            warehouse: at.warehouse,
            district: at.stock_level_district,
            threshold: uniform(random, 10, 20),
        }
    }

    fn customer(&self, random: &mut Prng) -> Customer {
        if is_chosen(BY_NAME_SHARE, random) {
            let name = self.constants.last_names_asked().draw(random);
            Customer::Name(name.cast_unsigned())
        } else {
            Customer::Number(self.constants.customers().draw(random))
        }
    }

    /// Any warehouse but `home`; `home` where there is no other.
    fn other_warehouse(&self, home: i64, random: &mut Prng) -> i64 {
        if self.warehouses == 1 {
            return home;
        }
        let other = uniform(random, 1, self.warehouses - 1);
        other + i64::from(other >= home)
    }
}

fn district(random: &mut Prng) -> i64 {
    uniform(random, 1, DISTRICTS as i64)
}

fn is_chosen(share: f64, random: &mut Prng) -> bool {
    random.next_double() < share
}

#[cfg(test)]
mod tests;
