from .agent import Agent as Agent
from .agent import CommandReading as CommandReading
from .agent import ConstantReading as ConstantReading
from .agent import FileReading as FileReading
from .agent import ReadingSource as ReadingSource
from .agent import as_fraction as as_fraction
from .provisioning import Provisioned as Provisioned
from .provisioning import provision as provision
