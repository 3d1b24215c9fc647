"""Contacts between people, from devices that flip each bit: block models, their distance, plans, and communities."""

from cloakwork.contacts.block_distance import BlockDistance, block_distance
from cloakwork.contacts.blocks import Blocks, Contacts
from cloakwork.contacts.communities import Communities, communities
from cloakwork.contacts.community_plan import CommunityPlan, plan_communities
from cloakwork.contacts.contact_pairs import simulate_contacts
from cloakwork.contacts.node_privacy import PrivateDensity, private_density

__all__ = [
    "BlockDistance",
    "Blocks",
    "Communities",
    "CommunityPlan",
    "Contacts",
    "PrivateDensity",
    "block_distance",
    "communities",
    "plan_communities",
    "private_density",
    "simulate_contacts",
]
