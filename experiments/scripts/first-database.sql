-- One row of the first of two databases, chosen at random.
\set number random(1, :rows)
SELECT operator, region FROM first WHERE number = :number;
