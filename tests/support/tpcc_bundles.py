"""Synthetic bundles of the TPC-C-derived workload, for tests of its report: invented figures, never to be quoted."""

from dataclasses import replace

from plinth.model.contents import BundleContents, TrialContents
from plinth.model.load import ScriptTotals, Totals
from plinth.model.plan import ScriptText
from plinth.model.tpcc_options import TpccMix
from report_bundles import RAMDISK, synthetic

WAREHOUSES = 2
DONE = {"new-order": 4_500, "payment": 4_300, "order-status": 400, "delivery": 400, "stock-level": 400}
ROLLED_BACK = 45
_TPCB = 'kind = "tpcb"\nscale = 10\n\n[workload]\nbuiltin = "tpcb-like"'
_TPCC = f'kind = "tpcc"\nwarehouses = {WAREHOUSES}\n\n[workload]\nbuiltin = "tpcc"'


def of_tpcc() -> BundleContents:
    """Disk and memory; each trial did 4,500 new orders and one more for its number, of which 45 were rolled back."""
    toml = RAMDISK.format(warmup=5, seconds=30, repeats=3)
    assert _TPCB in toml
    contents = synthetic(toml.replace(_TPCB, _TPCC).replace("synthetic-ramdisk", "synthetic-tpcc"))
    scripts = tuple(ScriptText(name=name, source="", weight=cards) for name, cards in TpccMix().weights().items())
    variants = tuple(variant.model_copy(update={"scripts": scripts}) for variant in contents.plan.variants)
    plan = contents.plan.model_copy(update={"variants": variants})
    return replace(contents, plan=plan, trials=tuple(map(_with_outcomes, contents.trials)))


def _with_outcomes(contents: TrialContents) -> TrialContents:
    number = contents.trial.number
    outcomes = tuple(_outcome(name, done + number, name == "new-order") for name, done in DONE.items())
    return replace(contents, trial=contents.trial.model_copy(update={"scripts": outcomes}))


def _outcome(name: str, done: int, rolls_back: bool) -> ScriptTotals:
    totals = Totals(
        scheduled=done,
        done=done,
        failed=0,
        skipped=0,
        open=0,
        retries=0,
        retried=0,
        rolled_back=ROLLED_BACK if rolls_back else 0,
    )
    return ScriptTotals(name=name, weight=TpccMix().weights()[name], measured=totals)
