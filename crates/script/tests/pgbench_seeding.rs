//! Random numbers of clients and choices of scripts by threads, against the real pgbench.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeMap;

use plinth_script::{Command, Prng, Seeds, Symbols, Value, Variables, choose_script, parse};
use support::Server;

const SEED: u64 = 987_654_321_012_345_678;
const TRANSACTIONS: usize = 200;
const DRAW: &str = "\\set x hash(random(1, 1000000000), :default_seed)";

/// Number of the script and value of each transaction of each client, in order.
type ByClient = BTreeMap<usize, Vec<(usize, i64)>>;

/// Runs pgbench with scripts of these weights, each of which draws a value.
fn pgbench_draws(
    clients: usize,
    threads: usize,
    weights: &[u64],
    default_seed: Option<i64>,
) -> ByClient {
    let server = Server::start();
    server.query("CREATE TABLE drawn (id serial, client int, script int, value bigint)");
    let insert = |script| {
        format!(
            "{DRAW}\nINSERT INTO drawn (client, script, value) VALUES (:client_id, {script}, :x);"
        )
    };
    let texts: Vec<String> = (0..weights.len()).map(insert).collect();
    let scripts: Vec<(&str, u64)> = texts
        .iter()
        .map(String::as_str)
        .zip(weights.iter().copied())
        .collect();
    let (c, j, t) = (
        clients.to_string(),
        threads.to_string(),
        TRANSACTIONS.to_string(),
    );
    let seed = format!("--random-seed={SEED}");
    let define = default_seed.map(|value| format!("--define=default_seed={value}"));
    let mut args = vec!["-c", &c, "-j", &j, "-t", &t, &seed];
    args.extend(define.as_deref());
    let output = server.pgbench(&args, &scripts);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut draws = ByClient::new();
    for row in server
        .query("SELECT client, script, value FROM drawn ORDER BY id")
        .lines()
    {
        let columns: Vec<i64> = row
            .split('|')
            .map(|column| column.parse().unwrap())
            .collect();
        let [client, script, value] = columns[..] else {
            panic!("{row}")
        };
        draws
            .entry(client as usize)
            .or_default()
            .push((script as usize, value));
    }
    draws
}

/// Draws a value as one transaction does.
fn draw(default_seed: i64, rng: &mut Prng) -> i64 {
    let mut symbols = Symbols::new();
    let script = parse("draw", DRAW, &mut symbols).unwrap();
    let mut variables = Variables::new(&symbols);
    variables.set(
        symbols.find("default_seed").unwrap(),
        Value::Int(default_seed),
    );
    let Command::Set { expr, .. } = &script.commands[0] else {
        panic!("not a \\set")
    };
    expr.eval(&variables, rng).unwrap().to_int().unwrap()
}

#[test]
fn clients_draw_what_pgbenchs_clients_draw() {
    for (clients, threads, given) in [(1, 1, None), (5, 3, None), (2, 1, Some(-7))] {
        let seeds = Seeds::new(SEED, clients, threads, given.is_none());
        let default_seed = seeds.default_seed.or(given).unwrap();
        let ours: ByClient = seeds
            .clients
            .iter()
            .enumerate()
            .map(|(client, rng)| {
                let mut rng = *rng;
                let values = (0..TRANSACTIONS).map(|_| (0, draw(default_seed, &mut rng)));
                (client, values.collect())
            })
            .collect();
        assert_eq!(ours, pgbench_draws(clients, threads, &[1], given));
    }
}

#[test]
fn threads_choose_what_pgbenchs_threads_choose() {
    let weights = [1, 5, 2];
    for given in [None, Some(12)] {
        // One client per thread: the order between clients of one thread depends on timing.
        let seeds = Seeds::new(SEED, 3, 3, given.is_none());
        let default_seed = seeds.default_seed.or(given).unwrap();
        let ours: ByClient = seeds
            .threads
            .iter()
            .map(|thread| {
                let client = thread.clients.start;
                let (mut choose, mut rng) = (thread.choose, seeds.clients[client]);
                let transaction = |_| {
                    (
                        choose_script(&weights, &mut choose),
                        draw(default_seed, &mut rng),
                    )
                };
                (client, (0..TRANSACTIONS).map(transaction).collect())
            })
            .collect();
        assert_eq!(ours, pgbench_draws(3, 3, &weights, given));
    }
}

#[test]
fn clients_are_dealt_to_threads_evenly_and_in_order() {
    let table: &[(usize, usize, &[usize])] = &[
        (1, 1, &[1]),
        (5, 3, &[2, 2, 1]),
        (8, 2, &[4, 4]),
        (7, 4, &[2, 2, 2, 1]),
    ];
    for &(clients, threads, shares) in table {
        let seeds = Seeds::new(1, clients, threads, true);
        let mut next = 0;
        for (thread, share) in seeds.threads.iter().zip(shares) {
            assert_eq!(
                thread.clients,
                next..next + share,
                "{clients} clients, {threads} threads"
            );
            next += share;
        }
        assert_eq!(next, clients);
    }
}
