"""The keys of a site, and removing keyed noise with them."""
