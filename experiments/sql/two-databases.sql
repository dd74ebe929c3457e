-- Two tables that stand for two databases, each in its own tablespace: raid0_one and raid0_two, or apart_one and apart_two.
SELECT set_config('default_tablespace', :'layout' || '_one', false);
CREATE TABLE first (number bigint, operator smallint, region smallint);
SELECT set_config('default_tablespace', :'layout' || '_two', false);
CREATE TABLE second (number bigint, operator smallint, region smallint);
