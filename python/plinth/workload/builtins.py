"""The built-in workloads: each is a list of transactions with weights, which are scripts or compiled into the load engine."""

from collections.abc import Callable
from dataclasses import dataclass

from plinth.model.builtin import BUILTINS, BuiltinName
from plinth.model.distribution import DEFAULT_PARAMETERS
from plinth.model.load_config import (
    TPCC_PACES,
    AccountMix,
    CompiledTransaction,
    CompiledWorkload,
    Keys,
    LedgerCommits,
    Pace,
    Tpcc,
)
from plinth.model.plan import ScriptText
from plinth.model.tpcc_options import TpccChoices, TpccMix
from plinth.model.workload import WorkloadSpec


@dataclass(frozen=True)
class KeyedScript:
    """A script: `key` is drawn from 1 to `greatest`, then comes the rest."""

    name: str
    key: str
    greatest: str
    rest: str
    weight: int = 1

    def transaction(self, spec: WorkloadSpec) -> ScriptText:
        """Return the script with the choice of rows and the number of statements of the workload."""
        source = f"\\set {self.key} {self._draw(spec)}\n{self.rest}" * spec.statements
        if spec.statements > 1:
            source = f"BEGIN;\n{source}END;\n"
        return ScriptText(name=self.name, source=source, weight=self.weight)

    def _draw(self, spec: WorkloadSpec) -> str:
        greatest = self.greatest if spec.active_rows is None else spec.active_rows
        if spec.keys == "uniform":
            return f"random(1, {greatest})"
        return f"random_{spec.keys}(1, {greatest}, {_parameter(spec)})"


@dataclass(frozen=True)
class KeyedTransaction:
    """A transaction of a workload in crates/load/src/compiled, with its parameters."""

    name: str
    parameters: Callable[[WorkloadSpec], CompiledWorkload]
    weight: int = 1

    def transaction(self, spec: WorkloadSpec) -> CompiledTransaction:
        """Return the transaction with the choice of rows of the workload."""
        return CompiledTransaction(name=self.name, native=self.parameters(spec), weight=self.weight)


@dataclass(frozen=True)
class TpccTransaction:
    """A transaction of the TPC-C-derived workload."""

    name: str

    def transaction(self, spec: WorkloadSpec) -> CompiledTransaction:
        """Return the transaction with the options of the workload and as many cards as its mix says."""
        chosen = {key: getattr(spec, key) for key in TpccChoices.model_fields}
        pace = TPCC_PACES[self.name] if spec.pacing == "spec" else Pace(0, 0)
        return CompiledTransaction(
            name=self.name,
            native=Tpcc(**chosen),
            weight=spec.mix.weights()[self.name],
            keying_s=pace.keying_s,
            think_s=pace.think_s,
            deferred=self.name == "delivery" and spec.delivery == "deferred",
        )


Builtin = tuple[KeyedScript | KeyedTransaction | TpccTransaction, ...]


def _account_mix(spec: WorkloadSpec) -> AccountMix:
    return AccountMix(
        keys=Keys(
            distribution=spec.keys,
            parameter=None if spec.keys == "uniform" else _parameter(spec),
            active_rows=spec.active_rows,
        )
    )


def _ledger(spec: WorkloadSpec) -> LedgerCommits:
    return LedgerCommits()


_OWN: dict[str, Builtin] = {
    "account-mix": (
        KeyedTransaction("lookup", _account_mix, weight=9),
        KeyedTransaction("transfer", _account_mix),
    ),
    "ledger": (KeyedTransaction("ledger", _ledger),),
    "tpcc": tuple(map(TpccTransaction, TpccMix().weights())),
    "numbers-select": (
        KeyedScript(
            "numbers-select", "number", ":rows", "SELECT operator, region FROM numbers WHERE number = :number;\n"
        ),
    ),
    "numbers-update": (
        KeyedScript(
            "numbers-update",
            "number",
            ":rows",
            "\\set operator random(1, :operators)\n"
            "\\set region random(1, :regions)\n"
            "UPDATE numbers SET operator = :operator, region = :region WHERE number = :number;\n",
        ),
    ),
    "upsert-function": (KeyedScript("upsert-function", "id", ":rows", "SELECT upsert_looked_up(:id);\n"),),
    "upsert": (KeyedScript("upsert", "id", ":rows", "SELECT upsert_updated(:id);\n"),),
}


def builtin_of(name: BuiltinName) -> Builtin:
    """Return the transactions of a built-in workload."""
    return (_pgbench_script(name),) if BUILTINS[name].is_pgbench else _OWN[name]


def _pgbench_script(name: str) -> KeyedScript:
    from plinth._native import builtin_script

    accounts = "100000 * :scale"
    draw, _, rest = builtin_script(name).partition("\n")
    assert draw == f"\\set aid random(1, {accounts})", f"{name} begins with the draw of its account"
    return KeyedScript(name, "aid", accounts, rest)


def _parameter(spec: WorkloadSpec) -> float:
    return spec.keys_parameter or DEFAULT_PARAMETERS[spec.keys]
