"""What servers and storages cost, by the user's own prices. Plinth has no price list."""

from collections.abc import Iterable

from pydantic import Field, model_validator

from plinth.model.base import Frozen, Name

HOURS_A_MONTH = 730.0
"""8,760 hours a year by 12, as the providers bill."""
_AMOUNTS = {"per_gib_month": "gib", "per_iops_month": "iops", "per_mb_s_month": "mb_s"}


class StoragePrice(Frozen):
    """What a volume costs that you would buy; the one that is measured may be smaller."""

    per_hour: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="For the whole of it.", examples=[0.12])
    per_gib_month: float = Field(default=0.0, ge=0, allow_inf_nan=False, examples=[0.08])
    gib: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Size.", examples=[500])
    per_iops_month: float = Field(default=0.0, ge=0, allow_inf_nan=False, examples=[0.005])
    iops: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Provisioned requests a second.", examples=[6000]
    )
    included_iops: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Of them without a price.")
    per_mb_s_month: float = Field(default=0.0, ge=0, allow_inf_nan=False, examples=[0.04])
    mb_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Provisioned throughput in MB/s.", examples=[250]
    )
    included_mb_s: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Of it without a price.")
    currency: str | None = Field(
        default=None, description="Must be that of [prices], if it is given.", examples=["USD"]
    )

    @model_validator(mode="after")
    def _has_the_amount_of_each_price(self) -> "StoragePrice":
        for price, amount in _AMOUNTS.items():
            if getattr(self, price) and getattr(self, amount) is None:
                raise ValueError(f"{amount} is missing: {price} needs how much you would buy, such as {amount} = 500")
        return self

    @property
    def total_per_hour(self) -> float:
        """What an hour of it costs, with the share of an hour in what is billed by the month."""
        month = (
            self.per_gib_month * (self.gib or 0.0)
            + self.per_iops_month * max(0.0, (self.iops or 0.0) - self.included_iops)
            + self.per_mb_s_month * max(0.0, (self.mb_s or 0.0) - self.included_mb_s)
        )
        return self.per_hour + month / HOURS_A_MONTH


class PricesSpec(Frozen):
    """What a server's machine and each storage cost: with them the report says what a million transactions cost."""

    currency: str = Field(min_length=1, max_length=16, description="Of all prices.", examples=["USD"])
    server_per_hour: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="An hour of the machine of one server. A standby costs as much as the primary.",
        examples=[0.178],
    )
    storage: dict[Name, StoragePrice] = Field(
        default_factory=dict,
        description="By the storage: each that holds files of a server, or one that it is built on. It is paid once for each server on it.",
    )

    @model_validator(mode="after")
    def _has_a_price(self) -> "PricesSpec":
        if self.server_per_hour is None and not self.storage:
            raise ValueError("no price is given: server_per_hour, or a table prices.storage.NAME")
        return self

    @model_validator(mode="after")
    def _has_one_currency(self) -> "PricesSpec":
        for name, one in self.storage.items():
            if one.currency not in (None, self.currency):
                raise ValueError(
                    f"storage {name} is priced in {one.currency}, the rest in {self.currency}: costs in two currencies cannot be compared"
                )
        return self

    def of(self, storage: str, described: Iterable[str]) -> StoragePrice | None:
        """Return the price of a storage of a plan, by its own name or by that of the `described` one of which it is a level."""
        if storage in self.storage:
            return self.storage[storage]
        levels_of = [name for name in described if storage.startswith(f"{name}-")]
        return self.storage.get(max(levels_of, key=len)) if levels_of else None
