//! Inputs have the distributions of the specification, as the workload draws them; what is drawn otherwise is found.

use plinth_tpcc::testing::{deviation_of_share, deviations};
use plinth_tpcc::{CUSTOMERS, LAST_NAMES};

use super::*;

const WAREHOUSES: i64 = 20;
const HOME: i64 = 7;
const TRANSACTIONS: usize = 60_000;
/// A distribution that is right is further off in one test of two million.
const MOST: f64 = 5.0;

fn draws() -> Draws {
    Draws {
        constants: Constants::of_seed(42),
        warehouses: WAREHOUSES,
        home: Home::ByClient,
        remote_line_share: 0.01,
        remote_payment_share: 0.15,
        rollback_share: 0.01,
    }
}

fn at_home() -> At {
    At {
        warehouse: HOME,
        stock_level_district: 3,
    }
}

/// The inputs of transactions of a type; `change` sets the parameters again before each.
fn inputs(transaction: usize, mut change: impl FnMut(&mut Draws, &mut Prng)) -> Vec<Input> {
    let (mut draws, mut random, mut other) = (draws(), Prng::seeded(11), Prng::seeded(12));
    let input = |_| {
        change(&mut draws, &mut other);
        draws.input(transaction, at_home(), &mut random)
    };
    (0..TRANSACTIONS).map(input).collect()
}

fn unchanged(_: &mut Draws, _: &mut Prng) {}

/// C drawn again for each transaction.
fn with_other_constants(draws: &mut Draws, random: &mut Prng) {
    draws.constants = Constants::of_seed(random.next_u64());
}

fn new_orders(change: impl FnMut(&mut Draws, &mut Prng)) -> Vec<NewOrderInput> {
    let inputs = inputs(0, change).into_iter();
    let orders = inputs.map(|input| match input {
        Input::NewOrder(order) => order,
        other => panic!("{other:?}"),
    });
    orders.collect()
}

fn payments(change: impl FnMut(&mut Draws, &mut Prng)) -> Vec<PaymentInput> {
    let inputs = inputs(1, change).into_iter();
    let payments = inputs.map(|input| match input {
        Input::Payment(payment) => payment,
        other => panic!("{other:?}"),
    });
    payments.collect()
}

fn order_statuses(change: impl FnMut(&mut Draws, &mut Prng)) -> Vec<OrderStatusInput> {
    let inputs = inputs(2, change).into_iter();
    let statuses = inputs.map(|input| match input {
        Input::OrderStatus(status) => status,
        other => panic!("{other:?}"),
    });
    statuses.collect()
}

/// How often each number from `min` to `max` was drawn.
fn counts(drawn: impl Iterator<Item = i64>, min: i64, max: i64) -> Vec<u64> {
    let mut counts = vec![0; (max - min + 1) as usize];
    for number in drawn {
        counts[(number - min) as usize] += 1;
    }
    counts
}

/// How far numbers are from being equally likely from `min` to `max`, in standard deviations of chi-squared.
fn from_uniform(drawn: impl Iterator<Item = i64>, min: i64, max: i64) -> f64 {
    let counts = counts(drawn, min, max);
    deviations(&counts, &vec![1.0 / counts.len() as f64; counts.len()])
}

fn items(orders: &[NewOrderInput]) -> Vec<u64> {
    let lines = orders
        .iter()
        .flat_map(|order| &order.lines[..order.valid_lines()]);
    counts(lines.map(|line| line.item), 1, ITEMS as i64)
}

fn numbers(customers: impl Iterator<Item = Customer>) -> Vec<u64> {
    let numbers = customers.filter_map(|customer| match customer {
        Customer::Number(number) => Some(number),
        Customer::Name(_) => None,
    });
    counts(numbers, 1, CUSTOMERS as i64)
}

fn names(customers: impl Iterator<Item = Customer>) -> Vec<u64> {
    let names = customers.filter_map(|customer| match customer {
        Customer::Number(_) => None,
        Customer::Name(name) => Some(name as i64),
    });
    counts(names, 0, LAST_NAMES as i64 - 1)
}

/// Of each field that is drawn by NURand its name, and how far it is from the exact probabilities.
fn from_nurand(change: fn(&mut Draws, &mut Prng)) -> Vec<(&'static str, f64)> {
    let constants = draws().constants;
    let (orders, payments, statuses) =
        (new_orders(change), payments(change), order_statuses(change));
    let ordering = counts(orders.iter().map(|one| one.customer), 1, CUSTOMERS as i64);
    let of_payments = || payments.iter().map(|one| one.customer);
    let of_statuses = || statuses.iter().map(|one| one.customer);
    let (item, customer) = (constants.items(), constants.customers());
    let name = constants.last_names_asked();
    [
        ("item of a line", items(&orders), item),
        ("customer of an order", ordering, customer),
        ("customer of a payment", numbers(of_payments()), customer),
        ("customer of a status", numbers(of_statuses()), customer),
        ("name of a payment", names(of_payments()), name),
        ("name of a status", names(of_statuses()), name),
    ]
    .map(|(field, counts, nurand)| (field, deviations(&counts, &nurand.probabilities())))
    .to_vec()
}

#[test]
fn items_customers_and_names_have_the_exact_probabilities_of_nurand() {
    for (field, found) in from_nurand(unchanged) {
        assert!(found.abs() < MOST, "{field}: {found}");
    }
}

#[test]
fn constants_drawn_anew_for_each_transaction_are_found_in_every_field() {
    for (field, found) in from_nurand(with_other_constants) {
        assert!(found > 4.0 * MOST, "{field}: {found}");
    }
}

#[test]
fn an_order_has_5_to_15_lines_of_1_to_10_pieces_for_any_district() {
    let orders = new_orders(unchanged);
    let lines = || orders.iter().flat_map(|order| &order.lines[..order.count]);
    let of_counts = from_uniform(orders.iter().map(|order| order.count as i64), 5, 15);
    let of_quantities = from_uniform(lines().map(|line| line.quantity), 1, 10);
    let of_districts = from_uniform(orders.iter().map(|order| order.district), 1, 10);
    for found in [of_counts, of_quantities, of_districts] {
        assert!(found.abs() < MOST, "{found}");
    }
    // The control: one count in a hundred that is another one.
    let changed = orders
        .iter()
        .enumerate()
        .map(|(place, order)| match place % 50 {
            0 => 15,
            _ => order.count as i64,
        });
    assert!(from_uniform(changed, 5, 15) > MOST);
}

/// How far the share of remote lines, and of orders that are rolled back, is from what is asked for.
fn shares_of_orders(change: fn(&mut Draws, &mut Prng)) -> [f64; 2] {
    let orders = new_orders(change);
    let lines: Vec<_> = orders
        .iter()
        .flat_map(|order| &order.lines[..order.count])
        .collect();
    let remote = lines.iter().filter(|line| line.supply_warehouse != HOME);
    let rolled_back = orders.iter().filter(|order| order.is_rolled_back);
    [
        deviation_of_share(remote.count(), lines.len(), 0.01),
        deviation_of_share(rolled_back.count(), orders.len(), 0.01),
    ]
}

#[test]
fn one_line_in_a_hundred_is_remote_and_one_order_in_a_hundred_is_rolled_back() {
    for found in shares_of_orders(unchanged) {
        assert!(found.abs() < MOST, "{found}");
    }
    let more = |draws: &mut Draws, _: &mut Prng| {
        draws.remote_line_share = 0.013;
        draws.rollback_share = 0.013;
    };
    for found in shares_of_orders(more) {
        assert!(found > MOST, "{found}");
    }
}

#[test]
fn remote_lines_are_of_any_other_warehouse() {
    let orders = new_orders(|draws, _| draws.remote_line_share = 1.0);
    let lines = orders.iter().flat_map(|order| &order.lines[..order.count]);
    let remote: Vec<_> = lines.map(|line| line.supply_warehouse).collect();
    assert!(!remote.contains(&HOME));
    let without_home = remote.iter().map(|other| other - i64::from(*other > HOME));
    assert!(from_uniform(without_home, 1, WAREHOUSES - 1).abs() < MOST);
    assert!(orders.iter().all(|order| !order.is_local()));
}

#[test]
fn only_the_last_line_of_an_order_that_is_rolled_back_is_of_an_unused_item() {
    for order in new_orders(|draws, _| draws.rollback_share = 0.5) {
        let unused = order.lines[..order.count]
            .iter()
            .position(|line| !(1..=ITEMS as i64).contains(&line.item));
        assert_eq!(unused, order.is_rolled_back.then_some(order.count - 1));
    }
}

/// How far the shares of payments by name and of remote ones, and of statuses by name, are from those asked for.
fn shares_of_payments(payments: &[PaymentInput], statuses: &[OrderStatusInput]) -> [f64; 3] {
    let remote = payments.iter().filter(|one| one.customer_warehouse != HOME);
    let named = payments.iter().filter(|one| one.customer.is_by_name());
    let statuses_named = statuses.iter().filter(|one| one.customer.is_by_name());
    [
        deviation_of_share(remote.count(), payments.len(), 0.15),
        deviation_of_share(named.count(), payments.len(), 0.6),
        deviation_of_share(statuses_named.count(), statuses.len(), 0.6),
    ]
}

#[test]
fn six_customers_in_ten_are_given_by_name_and_15_payments_in_a_hundred_are_remote() {
    let (payments, statuses) = (payments(unchanged), order_statuses(unchanged));
    for found in shares_of_payments(&payments, &statuses) {
        assert!(found.abs() < MOST, "{found}");
    }
    let of_districts = from_uniform(payments.iter().map(|one| one.district), 1, 10);
    let (remote, local): (Vec<&PaymentInput>, Vec<&PaymentInput>) = payments
        .iter()
        .partition(|one| one.customer_warehouse != HOME);
    let of_remote = from_uniform(remote.iter().map(|one| one.customer_district), 1, 10);
    let thousands = payments.iter().map(|one| (one.amount_cents - 100) / 4_999);
    let of_amounts = from_uniform(thousands.map(|part| part.min(99)), 0, 99);
    for found in [of_districts, of_remote, of_amounts] {
        assert!(found.abs() < MOST, "{found}");
    }
    assert!(
        local
            .iter()
            .all(|one| one.customer_district == one.district)
    );
    let amounts = payments.iter().map(|one| one.amount_cents);
    assert!(amounts.clone().min() >= Some(100) && amounts.max() <= Some(500_000));
    // The control: the fiftieth of them without a name.
    let fewer: Vec<_> = payments
        .into_iter()
        .enumerate()
        .map(|(place, mut one)| {
            if place % 50 == 0 {
                one.customer = Customer::Number(1);
            }
            one
        })
        .collect();
    assert!(shares_of_payments(&fewer, &statuses)[1] < -MOST);
}

#[test]
fn a_delivery_has_any_carrier_and_a_stock_level_any_threshold() {
    let carriers = inputs(3, unchanged).into_iter().map(|input| match input {
        Input::Delivery(delivery) => delivery.carrier,
        other => panic!("{other:?}"),
    });
    assert!(from_uniform(carriers, 1, 10).abs() < MOST);
    let thresholds = inputs(4, unchanged).into_iter().map(|input| match input {
        Input::StockLevel(level) => level.threshold,
        other => panic!("{other:?}"),
    });
    assert!(from_uniform(thresholds, 10, 20).abs() < MOST);
}

#[test]
fn ten_terminals_a_warehouse_have_one_district_each() {
    let draws = draws();
    let mut random = Prng::seeded(1);
    let mut places: Vec<_> = (0..10 * WAREHOUSES as usize)
        .map(|number| {
            let terminal = draws.terminal(number);
            let home = draws.home(&terminal, &mut random);
            // A terminal stays where it is.
            let again = draws.home(&terminal, &mut random);
            assert_eq!(home.warehouse, again.warehouse);
            (home.warehouse, home.stock_level_district)
        })
        .collect();
    places.sort_unstable();
    let all = (1..=WAREHOUSES).flat_map(|warehouse| (1..=10).map(move |one| (warehouse, one)));
    assert!(places.into_iter().eq(all));
}

#[test]
fn uniform_homes_are_drawn_for_each_transaction() {
    let draws = Draws {
        home: Home::Uniform,
        ..draws()
    };
    let (terminal, mut random) = (draws.terminal(0), Prng::seeded(1));
    let homes: Vec<_> = (0..TRANSACTIONS)
        .map(|_| draws.home(&terminal, &mut random))
        .collect();
    let of_warehouses = from_uniform(homes.iter().map(|at| at.warehouse), 1, WAREHOUSES);
    let of_districts = from_uniform(homes.iter().map(|at| at.stock_level_district), 1, 10);
    assert!(of_warehouses.abs() < MOST && of_districts.abs() < MOST);
}
