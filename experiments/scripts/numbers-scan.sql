-- Reads 1 MiB of numbers in order, from a page chosen at random: a page holds 185 rows, and nothing is read past the last.
\set first random(0, greatest(0, :rows / 185 - 128))
SELECT count(*) FROM numbers
WHERE ctid >= format('(%s,0)', :first::bigint)::tid AND ctid < format('(%s,0)', :first::bigint + 128)::tid;
