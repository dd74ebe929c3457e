"""How the power of an emulated disk is cut. Apart from the disk's model, so that the command line needs no models for it."""

from typing import Literal

CutMode = Literal["drop", "subset", "prefix", "torn"]
