-- Reads 1 MiB of accounts in order, from a page chosen at random: 1,640 pages hold the accounts of a unit of scale.
\set first random(0, 1639 * :scale - 128)
SELECT count(*) FROM pgbench_accounts
WHERE ctid >= format('(%s,0)', :first::bigint)::tid AND ctid < format('(%s,0)', :first::bigint + 128)::tid;
