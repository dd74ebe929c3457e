"""Scripts in pgbench's language, made up at random: they end well, and say in rows what they did."""

import random

# pgbench makes room for 128 commands, and forgets to make more when it comes to the end of it with a \gset.
_MOST_LINES = 60

VARIABLES = ("a", "b", "c", "d")
_CONSTANTS = ("0", "1", "-3", "7", "100", "0.5", "null", "true", "false")
_FUNCTIONS = ("abs(int({0}))", "least({0}, {1}, 5)", "greatest({0}, {1})", "hash({0})", "hash_fnv1a({0}, {1})")
_DRAWS = (
    "random(1, 10)",
    "random_gaussian(-50, 50, 2.5)",
    "random_exponential(1, 1000, 3)",
    "random_zipfian(1, 100, 1.2)",
    "permute(:n, 1000)",
)


class ScriptMaker:
    """Makes one script after the other. Number `n` of a script is in its rows, in text and as the variable `n`."""

    def __init__(self, seed: int, protocol: str, pipelines_sync: bool) -> None:
        self._random = random.Random(seed)
        self._protocol = protocol
        self._pipelines_sync = pipelines_sync
        self._number = 0
        self._lines: list[str] = []

    def script(self) -> str:
        """The next script."""
        self._number += 1
        while True:
            self._lines = [f"\\set n {self._number}"]
            self._lines += [f"\\set {name} {self._random.choice(_DRAWS)}" for name in VARIABLES]
            self._block(depth=3)
            self._row()
            if len(self._lines) < _MOST_LINES:
                return "\n".join(self._lines) + "\n"

    def _block(self, depth: int) -> None:
        kinds = [self._set, self._row, self._gset, self._aset, self._pause]
        if depth:
            kinds += [lambda: self._conditional(depth - 1)] * 3
        if self._protocol == "simple":
            kinds.append(self._combined)
        else:
            kinds.append(self._pipeline)
        for _ in range(self._random.randint(0, 4)):
            self._random.choice(kinds)()

    def _variable(self) -> str:
        return self._random.choice(VARIABLES)

    def _number_expression(self) -> str:
        """Neither null nor boolean, and small enough for every operator."""
        pieces = [f"(:n + {self._random.randint(-9, 9)})", self._random.choice(_DRAWS), "3"]
        left, right = self._random.choice(pieces), self._random.choice(pieces)
        operator = self._random.choice(["+", "-", "*", "%", "&", "|", "#", "<<"])
        return f"{left} {operator} {5 if operator in ('%', '<<') else right}"

    def _expression(self) -> str:
        left, right = self._number_expression(), self._number_expression()
        function = self._random.choice(_FUNCTIONS).format(left, right)
        case = f"case when {self._condition()} then {left} else {self._random.choice(_CONSTANTS)} end"
        return self._random.choice([left, function, case, self._random.choice(_CONSTANTS)])

    def _condition(self) -> str:
        left, right = self._number_expression(), self._number_expression()
        comparison = f"{left} {self._random.choice(['<', '<=', '=', '<>', '>', '>='])} {right}"
        test = f":{self._variable()} is {self._random.choice(['null', 'not null', 'true', 'not false'])}"
        both = f"{comparison} {self._random.choice(['and', 'or'])} not ({test})"
        return self._random.choice([comparison, test, both, f":{self._variable()}", "0", "1.5", "null"])

    def _set(self) -> None:
        self._lines.append(f"\\set {self._variable()} {self._expression()}")

    def _text(self) -> str:
        """What a row says of the variables; a null is a null, or the word, as the protocol has it."""
        values = ", ".join(f"cast(:{name} as text)" for name in VARIABLES)
        return f"concat_ws(' ', {self._number}, {len(self._lines)}, {values})"

    def _row(self) -> None:
        self._lines.append(f"insert into kept values (:client_id, {self._text()});")

    def _gset(self) -> None:
        name, other = self._variable(), self._variable()
        self._lines.append(f"select 4 as skipped, coalesce(cast(:{other} as text), '0') as {name} \\gset")
        self._lines.append(f"select {self._random.randint(0, 9)} as {other} \\gset")
        self._lines.append("select cast(:n as int) as n \\gset other_")

    def _aset(self) -> None:
        rows = self._random.randint(0, 3)
        self._lines.append(f"select g as {self._variable()} from generate_series(1, {rows}) as g order by g \\aset")

    def _pause(self) -> None:
        number = self._random.randint(0, 99)
        pauses = ["\\sleep 0 us", "\\sleep :n us", "\\shell true :n", f"\\setshell {self._variable()} echo {number}"]
        self._lines.append(self._random.choice(pauses))

    def _conditional(self, depth: int) -> None:
        self._lines.append(f"\\if {self._condition()}")
        self._block(depth)
        for _ in range(self._random.randint(0, 2)):
            self._lines.append(f"\\elif {self._condition()}")
            self._block(depth)
        if self._random.random() < 0.5:
            self._lines.append("\\else")
            self._block(depth)
        self._lines.append("\\endif")

    def _combined(self) -> None:
        name, other = self._random.sample(VARIABLES, 2)
        row = f"insert into kept values (:client_id, {self._text()})"
        ending = self._random.choice(["\\aset", "\\gset"])
        self._lines.append(f"select 1 as {name} \\; {row} \\; select :n as {other} {ending}")

    def _pipeline(self) -> None:
        self._lines.append("\\startpipeline")
        for _ in range(self._random.randint(0, 3)):
            self._row()
            self._random.choice([self._set, lambda: self._lines.append(f"\\if {self._condition()}\n\\endif")])()
            if self._pipelines_sync and self._random.random() < 0.5:
                self._lines.append("\\syncpipeline")
        self._lines.append("\\endpipeline")
