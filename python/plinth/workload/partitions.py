"""Range partitions of a table whose key is a sequence: their names, their rows, their statements."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A table or a partition that rows are copied into: those of the generator's table `table` from `first_row` on."""

    name: str
    table: int
    first_row: int
    rows: int
    row_bytes: float | None = None
    """The approximate size of a row, where those of other parts have another."""


@dataclass(frozen=True)
class Partitioned:
    """A table of `rows` rows, row r with the key `first + step * r`; its partitions hold equally many. All as SQL has it."""

    name: str
    number: int
    """Of the table among those of its generator."""
    rows: int
    partitions: int
    key: str | None
    first: int = 1
    step: int = 1

    def parts(self) -> tuple[Part, ...]:
        """Return what rows are copied into: the table itself when it has no partitions."""
        if not self.partitions:
            return (Part(self.name, self.number, 0, self.rows),)
        bounds = [self.rows * number // self.partitions for number in range(self.partitions + 1)]
        return tuple(
            Part(self._partition(number), self.number, bounds[number - 1], bounds[number] - bounds[number - 1])
            for number in range(1, self.partitions + 1)
        )

    def create(self, kind: str, columns: str, fillfactor: int, tablespace: str) -> list[str]:
        """Return the statements that make the table. `kind` is TABLE or UNLOGGED TABLE, `tablespace` a clause or nothing."""
        storage = f" WITH (fillfactor={fillfactor}){tablespace}"
        if not self.partitions:
            return [f"CREATE {kind} {self.name}({columns}){storage}"]
        statements = [f"CREATE TABLE {self.name}({columns}) PARTITION BY RANGE ({self.key}){tablespace}"]
        for part in self.parts():
            least, end = self._bounds(part)
            values = f"FROM ({least}) TO ({end})"
            statements.append(f"CREATE {kind} {part.name} PARTITION OF {self.name} FOR VALUES {values}{storage}")
        return statements

    def keys(self, tablespace: str) -> list[tuple[str, ...]]:
        """Return the primary key, in stages: those of partitions, at the same time, become that of the table."""
        if self.key is None:
            return []
        rest = f"ADD PRIMARY KEY ({self.key}){tablespace}"
        names = [part.name for part in self.parts()] if self.partitions else []
        stages = [tuple(f"ALTER TABLE {name} {rest}" for name in names), (f"ALTER TABLE {self.name} {rest}",)]
        return [stage for stage in stages if stage]

    def _partition(self, number: int) -> str:
        return f'{self.name[:-1]}_{number}"' if self.name.endswith('"') else f"{self.name}_{number}"

    def _bounds(self, part: Part) -> tuple[str, str]:
        """Return the least key and the one behind the greatest; open at both ends, so that any key has its partition."""
        after = part.first_row + part.rows
        is_first, is_last = part.first_row == 0, after == self.rows
        if self.step > 0:
            least = "MINVALUE" if is_first else str(self._value(part.first_row))
            return least, "MAXVALUE" if is_last else str(self._value(after))
        least = "MINVALUE" if is_last else str(self._value(after) + 1)
        return least, "MAXVALUE" if is_first else str(self._value(part.first_row) + 1)

    def _value(self, row: int) -> int:
        return self.first + self.step * row
