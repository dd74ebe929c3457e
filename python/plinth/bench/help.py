"""`plinth bench --help`."""

HELP = """\
plinth bench runs pgbench's command line on Plinth's load engine: same options,
same scripts, same random numbers, same report; less client CPU, and latencies
that can be trusted.

Usage:
  plinth bench [OPTION]... [DBNAME]

Make the tables:
  -i, --initialize         make the tables of the built-in scripts, and fill
                           them; with -b tpcc those of the TPC-C-derived
                           workload: -s is then warehouses, and large tables
                           have the partitions
  -I, --init-steps=[dtgGvpf]+ (default "dtgvp")
                           the steps and their order: d drops the tables, t
                           creates them, g fills them from here, G fills them
                           inside the server, v vacuums, p makes primary keys, f
                           foreign keys
  -F, --fillfactor=NUM     fill factor of the tables, 10 to 100
  -n, --no-vacuum          leave out the vacuum
  -q, --quiet              report progress only every 5 seconds
  -s, --scale=NUM          100,000 accounts for each unit (default: 1)
  --foreign-keys           also make foreign keys
  --index-tablespace=TABLESPACE
                           where indexes go
  --partition-method=(range|hash)
                           how pgbench_accounts is partitioned (default: range)
  --partitions=NUM         parts of pgbench_accounts (default: 0, not
                           partitioned)
  --tablespace=TABLESPACE  where tables go
  --unlogged-tables        make the tables unlogged

What to run:
  -b, --builtin=NAME[@W]   a built-in script, with weight W (default: 1); "-b
                           list" lists them; tpcc: the five transactions of the
                           TPC-C-derived workload, alone
  -f, --file=FILENAME[@W]  a script file, with weight W (default: 1); "-" is
                           standard input
  -N, --skip-some-updates  as -b simple-update
  -S, --select-only        as -b select-only

How to run it:
  -c, --client=NUM         clients, each with a connection (default: 1)
  -C, --connect            a new connection for each transaction
  -D, --define=VARNAME=VALUE
                           set a variable of the scripts
  -j, --jobs=NUM           threads (default: 1)
  -l, --log                write each transaction to a log file
  -L, --latency-limit=NUM  count transactions of more than NUM ms as late; with
                           -R, skip those already too late
  -M, --protocol=simple|extended|prepared
                           how statements are sent (default: simple)
  -n, --no-vacuum          do not vacuum before the run
  -P, --progress=NUM       report progress every NUM seconds
  -r, --report-per-command latencies, failures and retries of each command
  -R, --rate=NUM           transactions per second to aim at, at random
                           intervals
  -s, --scale=NUM          the scale to report for scripts of your own
  -t, --transactions=NUM   transactions of each client (default: 10)
  -T, --time=NUM           seconds to run
  -v, --vacuum-all         vacuum all four tables before the run
  --aggregate-interval=NUM log sums over NUM seconds instead of each transaction
  --continue-on-error      a client goes on after an error of SQL, which counts
                           as a failure
  --exit-on-abort          end as soon as one client cannot go on
  --failures-detailed      tell failures apart
  --log-prefix=PREFIX      beginning of the log files' names (default:
                           "pgbench_log")
  --max-tries=NUM          tries of a transaction after a serialization failure
                           or deadlock (default: 1)
  --progress-timestamp     Unix time in progress reports
  --random-seed=SEED       "time", "rand", or a number: the same draws as
                           pgbench with the same seed
  --sampling-rate=NUM      share of the transactions to log, such as 0.01
  --show-script=NAME       show a built-in script, then exit
  --verbose-errors         report every error

Extensions to pgbench (names in full):
  -R, --rate=RATE[..RATE][:SECONDS],...
                           a rate that steps and ramps: 100:30,100..500:60,500
  --arrivals=poisson|uniform
                           with -R: at random intervals (default), or evenly
                           spaced
  --delivery=immediate|deferred
                           with -b tpcc --pacing=spec: whether a terminal waits
                           for its Delivery (default), or goes on at once
  --fleet=N|HOST,...|N@RAY drive the load from N processes of this machine,
                           from hosts, by ssh, or from N machines of a Ray
                           cluster: 3@auto, 3@ray://HOST:10001; -c and -R are
                           totals, -j is for each machine
  --fleet-command=PATH     plinth on the hosts (default: plinth)
  --form=statements|procedures
                           with -b tpcc: client SQL (default), or one call of a
                           procedure for each transaction
  --isolation=read-committed|repeatable-read|serializable
                           with -b tpcc: of every transaction (default:
                           read-committed); see --max-tries
  --json=FILE              everything that was measured, as JSON; "-" is
                           standard output, the report then goes to stderr
  --mix=N,N,N,N,N          with -b tpcc: cards of new-order, payment,
                           order-status, delivery and stock-level in the deck
                           that is dealt (default: 45,43,4,4,4)
  --pacing=none|spec       with -b tpcc: spec has keying and think times; give
                           ten clients for each warehouse
  --percentiles=P,P,...    latencies at these percentiles, such as 50,95,99.9,
                           from HDR histograms
  --warmup=SECONDS         run this long before measuring
  with -R: latency counts from the intended start, so that a stall is seen in
  all that it delays

Connection:
  --debug                  tell more
  -d, --dbname=DBNAME      database, or a connection string
  -h, --host=HOSTNAME      server, or directory of its socket
  -p, --port=PORT          port
  -U, --username=USERNAME  user
  -V, --version            show the version, then exit
  -?, --help               show this help, then exit
  PGHOST and its like, services and .pgpass count as they do for psql.

Exit codes: 0 ok; 1 bad usage, or it could not begin; 2 a client could not go
on. Ctrl-C shows what there is.
"""
