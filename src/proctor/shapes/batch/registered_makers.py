"""The tasks that can be made in batches. All others are made one by one."""

from proctor.shapes.batch.coordinate import CoordinateMaker
from proctor.shapes.batch.count import CountMaker
from proctor.shapes.batch.existence import ExistenceMaker
from proctor.shapes.batch.existence_tracking import ExistenceTrackingMaker
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.shuffle_tracking import ShuffleTrackingMaker
from proctor.shapes.batch.transitivity import TransitivityMaker
from proctor.shapes.task import Task
from proctor.shapes.tasks.coordinate import CoordinateTask
from proctor.shapes.tasks.count import CountTask
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.existence_tracking import ExistenceTrackingTask
from proctor.shapes.tasks.shuffle_tracking import ShuffleTrackingTask
from proctor.shapes.tasks.transitivity import TransitivityTask

REGISTERED_MAKERS: dict[type[Task], type[Maker]] = {
    CoordinateTask: CoordinateMaker,
    CountTask: CountMaker,
    ExistenceTask: ExistenceMaker,
    ExistenceTrackingTask: ExistenceTrackingMaker,
    ShuffleTrackingTask: ShuffleTrackingMaker,
    TransitivityTask: TransitivityMaker,
}
