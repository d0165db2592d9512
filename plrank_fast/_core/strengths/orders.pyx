"""Orders of items in rankings: one comes before another."""

from plrank_fast._core.runtime.scalar_types cimport int64_t, intp_t, uint8_t


def comes_before(
    const int64_t[::1] items, const int64_t[::1] places, const int64_t[::1] limits, int64_t rest, bint draws,
    uint8_t[:, ::1] before
):
    """Set ``before[one, other]`` where one item is at a place, and the other at the next place.

    With ``draws``, items of one place come before one another, unless it is the place ``rest``. Items are sorted by
    place.
    """
    cdef intp_t ranking, k, other, last, now
    for ranking in range(limits.shape[0] - 1):
        last = now = limits[ranking]
        for k in range(limits[ranking], limits[ranking + 1]):
            if places[k] != places[now]:
                last, now = now, k
            elif draws and k > now and places[k] != rest:
                before[items[k - 1], items[k]] = before[items[k], items[k - 1]] = True
            for other in range(last, now):
                before[items[other], items[k]] = True
