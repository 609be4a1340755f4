"""What lies beside the frame: images, series and sets of items, found by the unit's id."""

from ldf.beside.base import Beside, Block, Encoded, Opened, Units
from ldf.beside.images import Images
from ldf.beside.series import Items, Series

__all__ = ["Beside", "Block", "Encoded", "Images", "Items", "Opened", "Series", "Units"]
