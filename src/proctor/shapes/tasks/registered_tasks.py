"""Every task of the family by name: a new one is one file and one line here."""

from proctor.shapes.task import Task
from proctor.shapes.tasks.coordinate import CoordinateTask
from proctor.shapes.tasks.count import CountTask
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.existence_tracking import ExistenceTrackingTask
from proctor.shapes.tasks.shuffle_tracking import ShuffleTrackingTask
from proctor.shapes.tasks.transitivity import TransitivityTask

REGISTERED_TASKS: dict[str, type[Task]] = {
    "coordinate": CoordinateTask,
    "count": CountTask,
    "existence": ExistenceTask,
    "existence_tracking": ExistenceTrackingTask,
    "shuffle_tracking": ShuffleTrackingTask,
    "transitivity": TransitivityTask,
}
