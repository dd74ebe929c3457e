use std::collections::{HashMap, HashSet};
use std::ops::Range;

use proptest::prelude::*;

use super::*;

const WAREHOUSES: u64 = 2;

fn tables(seed: u64) -> Vec<Box<dyn Table>> {
    let generator = TpccGenerator {
        warehouses: WAREHOUSES,
        seed,
    };
    assert_eq!(generator.validate(), Ok(()));
    generator.tables()
}

fn table(name: &str) -> Box<dyn Table> {
    let found = tables(7).into_iter().find(|table| table.name() == name);
    found.unwrap()
}

fn text(table: &dyn Table, rows: Range<u64>) -> String {
    let mut out = Vec::new();
    table.write_rows(rows, &mut out);
    String::from_utf8(out).unwrap()
}

/// The fields of rows.
fn rows(name: &str, rows: Range<u64>) -> Vec<Vec<String>> {
    let text = text(table(name).as_ref(), rows);
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(fields).collect()
}

/// Whether `count` of `draws` is what a share of `probability` leads to, within five standard deviations.
fn is_likely(count: usize, draws: usize, probability: f64) -> bool {
    let expected = draws as f64 * probability;
    (count as f64 - expected).abs() < 5.0 * (expected * (1.0 - probability)).sqrt()
}

/// Chi-squared of counts that are to be equal, as standard deviations from its mean.
fn deviations(counts: impl IntoIterator<Item = usize>) -> f64 {
    let counts: Vec<f64> = counts.into_iter().map(|count| count as f64).collect();
    let expected = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares = counts.iter().map(|count| (count - expected).powi(2));
    let degrees = (counts.len() - 1) as f64;
    (squares.sum::<f64>() / expected - degrees) / (2.0 * degrees).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_row_is_the_same_in_whatever_pieces(seed: u64, place in 0_usize..9, at in 0.0..1.0, cut in 1_u64..60) {
        let table = tables(seed).swap_remove(place);
        let rows = table.rows();
        let first = (at * rows as f64) as u64;
        let end = rows.min(first + 60);
        let middle = end.min(first + cut);
        let pieces = text(table.as_ref(), first..middle) + &text(table.as_ref(), middle..end);
        prop_assert_eq!(pieces.lines().count() as u64, end - first);
        prop_assert_eq!(pieces, text(table.as_ref(), first..end));
    }
}

#[test]
fn tables_have_the_rows_of_the_specification() {
    let counts: Vec<_> = tables(1)
        .iter()
        .map(|table| (table.name().to_owned(), table.rows()))
        .collect();
    let lines = counts[7].1;
    let expected = [
        ("warehouse", 2),
        ("district", 20),
        ("item", 100_000),
        ("customer", 60_000),
        ("history", 60_000),
        ("orders", 60_000),
        ("new_order", 18_000),
        ("order_line", lines),
        ("stock", 200_000),
    ];
    let expected = expected.map(|(name, rows)| (name.to_owned(), rows));
    assert_eq!(counts, expected);
    // 60,000 orders of 10 lines, with a standard deviation of the square root of 10 each.
    assert!(lines.abs_diff(600_000) < 5 * 775, "{lines}");
    let of = |warehouses: &[u64]| TpccGenerator::order_lines(warehouses, 1);
    assert_eq!(of(&[0, WAREHOUSES]), [0, lines]);
    assert_eq!(of(&[1, WAREHOUSES]), [of(&[1])[0], lines]);
}

#[test]
fn another_seed_makes_other_rows() {
    for (one, other) in tables(1).iter().zip(tables(2)) {
        // Of new_order nothing is drawn.
        let same = text(one.as_ref(), 0..2) == text(other.as_ref(), 0..2);
        assert_eq!(same, one.name() == "new_order", "{}", one.name());
    }
}

#[test]
fn each_district_has_a_permutation_of_its_customers_in_its_orders() {
    let orders = rows("orders", 0..60_000);
    let mut after_each_other = 0;
    // How often customers of each tenth have orders of each tenth.
    let mut tenths = [0; 100];
    for district in orders.chunks(3_000) {
        let customers: Vec<usize> = district.iter().map(|row| row[3].parse().unwrap()).collect();
        assert_eq!(customers.iter().collect::<HashSet<_>>().len(), 3_000);
        assert_eq!(customers.iter().max(), Some(&3_000));
        after_each_other += customers
            .windows(2)
            .filter(|two| two[0] + 1 == two[1])
            .count();
        for (order, customer) in customers.iter().enumerate() {
            tenths[order / 300 * 10 + (customer - 1) / 300] += 1;
        }
    }
    // One for each district is what chance makes.
    assert!(after_each_other < 45, "{after_each_other}");
    assert!(deviations(tenths) < 5.0);
    assert_ne!(orders[0][3], orders[3_000][3]);
}

#[test]
fn orders_have_their_lines_and_the_last_nine_hundred_are_undelivered() {
    let orders = rows("orders", 0..6_000);
    let mut counts = [0; 11];
    let lines: u64 = orders
        .iter()
        .map(|row| row[5].parse::<u64>().unwrap())
        .sum();
    let mut lines = rows("order_line", 0..lines).into_iter();
    let mut new_orders = rows("new_order", 0..1_800).into_iter();
    for (number, order) in orders.iter().enumerate() {
        let (district, id) = (number / 3_000 + 1, number % 3_000 + 1);
        let key = ["1".to_owned(), district.to_string(), id.to_string()];
        assert_eq!(order[..3], key);
        let is_delivered = id < 2_101;
        assert_eq!(order[4] != "\\N", is_delivered);
        if !is_delivered {
            assert_eq!(new_orders.next().unwrap(), key);
        }
        let count: usize = order[5].parse().unwrap();
        counts[count - 5] += 1;
        for place in 1..=count {
            let line = lines.next().unwrap();
            assert_eq!(line[..3], key);
            assert_eq!(line[3], place.to_string());
            let item: u64 = line[4].parse().unwrap();
            assert!((1..=100_000).contains(&item));
            assert_eq!((line[5].as_str(), line[7].as_str()), ("1", "5"));
            let amount: f64 = line[8].parse().unwrap();
            if is_delivered {
                assert_eq!((&line[6], amount), (&order[7], 0.0));
            } else {
                assert_eq!(line[6], "\\N");
                assert!((0.01..=9_999.99).contains(&amount));
            }
            assert_eq!(line[9].len(), 24);
        }
    }
    assert_eq!((lines.next(), new_orders.next()), (None, None));
    assert!(deviations(counts) < 5.0, "{counts:?}");
    assert_eq!(orders[3_599 - 1][7], "2000-01-01 00:09:59");
    assert_eq!(orders[2_999][7], "2000-01-01 00:50:00");
}

#[test]
fn customers_have_their_names_and_a_tenth_of_them_bad_credit() {
    let customers = rows("customer", 0..9_000);
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (number, customer) in customers.iter().enumerate() {
        let (district, id) = (number / 3_000 + 1, number % 3_000 + 1);
        assert_eq!(
            customer[..3],
            ["1".to_owned(), district.to_string(), id.to_string()]
        );
        assert!((8..=16).contains(&customer[3].len()));
        assert!((300..=500).contains(&customer[20].len()));
        assert_eq!((customer[4].as_str(), customer[11].len()), ("OE", 16));
        if id <= 1_000 {
            let mut name = Vec::new();
            plinth_tpcc::append_last_name(id as u64 - 1, &mut name);
            assert_eq!(customer[5].as_bytes(), name);
        } else {
            *names.entry(&customer[5]).or_default() += 1;
        }
    }
    let bad = customers.iter().filter(|row| row[13] == "BC").count();
    assert!(is_likely(bad, 9_000, 0.1), "{bad}");
    // NURand(255, 0, 999): far from equally often.
    assert!(deviations(names.into_values()) > 20.0);
}

#[test]
fn a_tenth_of_items_and_of_stock_is_original() {
    for (name, column) in [("item", 4), ("stock", 16)] {
        let rows = rows(name, 0..20_000);
        let mut places = [0; 19];
        let mut original = 0;
        for row in &rows {
            let data = row.last().unwrap();
            assert_eq!(row.len(), column + 1);
            assert!((26..=50).contains(&data.len()));
            if let Some(place) = data.find("ORIGINAL") {
                original += 1;
                // Every text has the first 19 places.
                if let Some(count) = places.get_mut(place) {
                    *count += 1;
                }
            }
        }
        assert!(is_likely(original, 20_000, 0.1), "{name}: {original}");
        assert!(deviations(places) < 5.0, "{name}: {places:?}");
    }
}

#[test]
fn warehouses_and_districts_begin_with_the_payments_of_the_history() {
    for (name, place, amount) in [("warehouse", 8, "300000.00"), ("district", 9, "30000.00")] {
        for row in rows(name, 0..2) {
            assert_eq!(row[place], amount);
            assert!(row[place - 2].ends_with("11111") && row[place - 2].len() == 9);
            let tax: f64 = row[place - 1].parse().unwrap();
            assert!((0.0..=0.2).contains(&tax));
        }
    }
    assert_eq!(rows("district", 11..12)[0][..2], ["2", "2"]);
    assert_eq!(rows("district", 0..1)[0][10], "3001");
    let history = rows("history", 33_000..33_001);
    assert_eq!(history[0][..5], ["1", "2", "2", "2", "2"]);
    assert_eq!(history[0][6], "10.00");
}
