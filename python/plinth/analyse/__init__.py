"""Contents of a bundle -> Analysis. Pure: opens nothing, starts nothing, and the same bundle gives the same analysis."""

from plinth.analyse.analysis import analyse

__all__ = ["analyse"]
