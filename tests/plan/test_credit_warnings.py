"""The warning of trials that are shorter than the credits of a volume last."""

import pytest

from plinth.experiment import read_experiment_text
from plinth.run.checks.credits import lasts_s
from plinth.run.planning.make_plan import make_plan

TEXT = """\
spec = 1
name = "credits"
question = "How long do they last?"
[storage.volume]
kind = "emulated"
profile = "PROFILE"
size = "1GiB"
physics = { PHYSICS }
[server]
storage = "volume"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
[measure]
duration = "30s"
repeats = 1
aa = false
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("profile", "physics", "said"),
    [
        ("gp2-100", "", "its credits last 33 min"),
        ("azure-p10", "", "its credits last 30 min"),
        ("gp2-100", "credit_level = 0.5", "its credits last 16 min"),
        ("gp2-100", "credit_level = 0", None),
        ("gp2-100", "iops_credits = 27_000", None),
        ("gp3", "", None),
        ("nvme", "", None),
    ],
)
def test_a_trial_that_the_credits_outlast_is_warned_of(profile, physics, said, scratch):
    text = TEXT.replace("PROFILE", profile).replace("PHYSICS", physics)
    plan = make_plan(read_experiment_text(text, "x.toml", scratch), run_id="x", bundle=scratch / "bundle")
    found = [one for one in plan.warnings if "measures the credits" in one]
    assert len(found) == (said is not None)
    if said is not None:
        assert said in found[0] and "a trial takes" in found[0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("baseline_iops = 300\nburst_iops = 3000\niops_credits = 5_400_000", "its credits last 33 min"),
        ("baseline_iops = 300\nburst_iops = 3000\niops_credits = 27_000", None),
        ("baseline_iops = 300", None),
    ],
)
def test_of_a_real_volume_it_is_warned_by_what_its_provider_states(keys, said, scratch):
    volume = 'kind = "emulated"\nprofile = "PROFILE"\nsize = "1GiB"\nphysics = { PHYSICS }'
    text = TEXT.replace(volume, f'kind = "directory"\n{keys}')
    plan = make_plan(read_experiment_text(text, "x.toml", scratch), run_id="x", bundle=scratch / "bundle")
    found = [one for one in plan.warnings if "measures the credits" in one]
    assert len(found) == (said is not None)
    if said is not None:
        assert said in found[0] and "longer trials" in found[0]


@pytest.mark.parametrize(
    ("rate", "burst", "credits_left", "seconds"),
    [(300, 3000, 5_400_000, 2000), (300, 3000, 0, None), (3000, 3000, 9, None), (0, 3000, 9, None), (300, 0, 9, None)],
)
def test_how_long_credits_last(rate, burst, credits_left, seconds):
    assert lasts_s(rate, burst, credits_left) == seconds
