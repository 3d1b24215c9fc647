"""Private time series: filters of a series of events, published with the least noise that hides each event.

Names load on first use: some need Arrow, Matplotlib or a site.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
