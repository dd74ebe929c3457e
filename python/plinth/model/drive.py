"""What may be written to a drive in its life: as its maker says, or as its cells withstand it."""

from pydantic import Field, model_validator

from plinth.model.base import Frozen
from plinth.model.units import SizeBytes


class Rating(Frozen):
    """How much may be written to a drive in its life."""

    rated_bytes: int
    source: str = Field(description="How it was computed.")


class DriveSpec(Frozen):
    """What a drive is rated for: its maker's terabytes written, or what its cells withstand."""

    tbw_bytes: SizeBytes | None = Field(
        default=None,
        gt=0,
        alias="tbw",
        description="What its maker rates it for: terabytes written by the host.",
        examples=["600TB"],
    )
    pe_cycles: int | None = Field(
        default=None, gt=0, description="Times that each cell may be written, with capacity.", examples=[5000]
    )
    capacity_bytes: SizeBytes | None = Field(
        default=None, gt=0, alias="capacity", description="Of the drive, with pe_cycles.", examples=["300GB"]
    )
    waf: float = Field(
        default=1.0,
        ge=1,
        allow_inf_nan=False,
        description="Write amplification factor, with pe_cycles: bytes that the drive writes to its cells for each of the "
        "host's. 1 is the best case.",
    )

    @model_validator(mode="after")
    def _one_rating(self) -> "DriveSpec":
        cells = (self.pe_cycles, self.capacity_bytes)
        if self.tbw_bytes is not None and cells != (None, None):
            raise ValueError("give tbw, or pe_cycles with capacity, not both")
        if self.tbw_bytes is None and None in cells:
            raise ValueError("give tbw, or pe_cycles with capacity")
        if self.tbw_bytes is not None and self.waf != 1:
            raise ValueError("waf goes with pe_cycles and capacity; tbw is the host's bytes already")
        return self

    def rating(self) -> Rating:
        """Return the rating: P/E cycles x capacity is what the cells take; of that 1/WAF comes from the host (as JESD218 defines it)."""
        if self.tbw_bytes is not None:
            return Rating(rated_bytes=self.tbw_bytes, source=f"rated for {_terabytes(self.tbw_bytes)} written")
        if self.pe_cycles is None or self.capacity_bytes is None:
            raise AssertionError("a rating is one of the two, as was checked")
        rated_bytes = round(self.pe_cycles * self.capacity_bytes / self.waf)
        factor = f" / write amplification {self.waf:g}" if self.waf != 1 else ""
        cells = f"{self.pe_cycles:,} P/E cycles x {self.capacity_bytes / 1e9:,.0f} GB{factor}"
        return Rating(rated_bytes=rated_bytes, source=f"of {cells} = {_terabytes(rated_bytes)}")


def _terabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e12:,.0f} TB"
