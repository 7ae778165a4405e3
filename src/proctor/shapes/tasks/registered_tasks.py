"""Every task of the family by name: a new one is one file and one line here."""

from proctor.shapes.task import Task
from proctor.shapes.tasks.between import BetweenTask
from proctor.shapes.tasks.comparison import ComparisonTask
from proctor.shapes.tasks.coordinate import CoordinateTask
from proctor.shapes.tasks.count import CountTask
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.existence_tracking import ExistenceTrackingTask
from proctor.shapes.tasks.logic import LogicTask
from proctor.shapes.tasks.move_tracking import MoveTrackingTask
from proctor.shapes.tasks.multi_hop import MultiHopTask
from proctor.shapes.tasks.nearest import NearestTask
from proctor.shapes.tasks.odd_one_out import OddOneOutTask
from proctor.shapes.tasks.recolour_tracking import RecolourTrackingTask
from proctor.shapes.tasks.shuffle_tracking import ShuffleTrackingTask
from proctor.shapes.tasks.superlative import SuperlativeTask
from proctor.shapes.tasks.transitivity import TransitivityTask
from proctor.shapes.tasks.undetermined import UndeterminedTask

REGISTERED_TASKS: dict[str, type[Task]] = {
    "between": BetweenTask,
    "comparison": ComparisonTask,
    "coordinate": CoordinateTask,
    "count": CountTask,
    "existence": ExistenceTask,
    "existence_tracking": ExistenceTrackingTask,
    "logic": LogicTask,
    "move_tracking": MoveTrackingTask,
    "multi_hop": MultiHopTask,
    "nearest": NearestTask,
    "odd_one_out": OddOneOutTask,
    "recolour_tracking": RecolourTrackingTask,
    "shuffle_tracking": ShuffleTrackingTask,
    "superlative": SuperlativeTask,
    "transitivity": TransitivityTask,
    "undetermined": UndeterminedTask,
}
