"""Every form in which readings, events and recordings come in: CSV and Parquet files, pipes, frames.

Names load on first use: most readers need neither Arrow nor recovery.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
