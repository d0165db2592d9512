"""The main benchmark: CPU cost of one epoch's gradients against the cutoff K."""

from .workloads import ESTIMATORS, RULER, SLOW

QUERIES = {"yahoo": 96, "mslr": 48, "istella": 24}  # measured; the result is scaled to the whole set
ANY_NUMBER = [name for name, method in ESTIMATORS.items() if method.n_samples < 2]  # measured once, as N is theirs


class EpochCost:
    """Seconds of one thread for the gradients of an epoch, by method, K, N and data shape.

    Measured on a sample of queries with the list lengths of the set, then scaled to the documents of the set. Only
    sampling and gradients are counted, not the model.
    """

    params = (
        list(ESTIMATORS),
        [5, 10, 25, 50, 100],
        [100, 1000],
        list(QUERIES),
    )
    param_names = ("method", "cutoff", "n_samples", "shape")
    unit = "seconds per epoch"
    timeout = 300

    def setup(self, method, cutoff, n_samples, shape):
        if method in SLOW and (n_samples > 100 or shape != "yahoo"):
            raise NotImplementedError("minutes per cell")
        if method in ANY_NUMBER and n_samples > 100:
            raise NotImplementedError("does not depend on the number of samples")
        self.workload = RULER.Workload.of_profile(shape, QUERIES[shape])

    def track_seconds_per_epoch(self, method, cutoff, n_samples, shape):
        return RULER.seconds_per_epoch(RULER.Method.of(method, n_samples), self.workload, cutoff, seconds=0.3)[0]

    track_seconds_per_epoch.unit = "seconds per epoch"
