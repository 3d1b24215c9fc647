"""Contacts between people, from devices that flip each bit: block models, their distance, plans, and communities."""

from cloakwork.contacts.block_distance import BlockDistance, block_distance
from cloakwork.contacts.blocks import Blocks, Contacts
from cloakwork.contacts.communities import Communities, communities
from cloakwork.contacts.community_plan import CommunityPlan, plan_communities
from cloakwork.contacts.contact_pairs import simulate_contacts

__all__ = [
    "BlockDistance",
    "Blocks",
    "Communities",
    "CommunityPlan",
    "Contacts",
    "block_distance",
    "communities",
    "plan_communities",
    "simulate_contacts",
]
