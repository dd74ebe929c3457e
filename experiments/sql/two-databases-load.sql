INSERT INTO first SELECT n, n % 100, n % 7 FROM generate_series(1, :rows) n;
INSERT INTO second SELECT n, n % 100, n % 7 FROM generate_series(1, :rows) n;
SELECT set_config('default_tablespace', :'layout' || '_one', false);
ALTER TABLE first ADD PRIMARY KEY (number);
SELECT set_config('default_tablespace', :'layout' || '_two', false);
ALTER TABLE second ADD PRIMARY KEY (number);
