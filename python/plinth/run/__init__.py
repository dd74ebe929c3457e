"""The conductor: it brings the stages together, to plan an experiment and to run it.

To read in this order: `planning` and `checks`, `conduct` (the phases of a run), `provision`, `trial`; of what fails `faults` and
`power_cuts`; of a run that was cut short `resume`.
"""
