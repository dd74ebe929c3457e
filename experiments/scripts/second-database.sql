-- One row of the second of two databases, chosen at random.
\set number random(1, :rows)
SELECT operator, region FROM second WHERE number = :number;
