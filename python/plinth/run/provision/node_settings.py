"""The settings that a variant asks for on each node of its cluster."""

from plinth.model.base import SettingValue
from plinth.model.plan import PRIMARY, Plan, Variant
from plinth.server import settings_of_standby


def settings_of_node(plan: Plan, variant: Variant, node: str) -> dict[str, SettingValue]:
    """What the server of a node gets: the primary's settings, or those of a standby, which include what its primary has."""
    if node == PRIMARY:
        return dict(variant.settings)
    return settings_as_standby(plan, variant, node)


def settings_as_standby(plan: Plan, variant: Variant, node: str) -> dict[str, SettingValue]:
    """What a node gets while it is a standby, as a primary of before does after a failover."""
    of_cluster = [one.settings for one in plan.variants if one.cluster == variant.cluster]
    return settings_of_standby(variant.settings, variant.standby_settings.get(node, {}), of_cluster)
