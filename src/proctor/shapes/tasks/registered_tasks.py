"""Every task of the family by name: a new one is one file and one line here."""

from proctor.shapes.task import Task
from proctor.shapes.tasks.existence import ExistenceTask

REGISTERED_TASKS: dict[str, type[Task]] = {
    "existence": ExistenceTask,
}
