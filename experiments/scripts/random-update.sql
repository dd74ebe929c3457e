-- One row of numbers, chosen at random, and nothing else: the updating study's transaction.
\set number random(1, :rows)
\set operator random(1, 100)
\set region random(1, 100)
UPDATE numbers SET operator = :operator, region = :region WHERE number = :number;
