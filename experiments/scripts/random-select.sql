-- One row of numbers, chosen at random.
\set number random(1, :rows)
SELECT operator, region FROM numbers WHERE number = :number;
