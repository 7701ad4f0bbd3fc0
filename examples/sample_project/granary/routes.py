"""Which stops go on which lorry, and in which order it makes them.

Nearest neighbour first, then two-opt until nothing gets shorter. A day has some thirty stops: good enough in a second.
"""

import math
from dataclasses import dataclass

from granary.errors import GranaryError

DEPOT = (51.96, 7.63)
EARTH_KM = 6371.0


@dataclass(frozen=True)
class Stop:
    customer: str
    at: tuple[float, float]
    kg: int


@dataclass(frozen=True)
class Route:
    lorry: str
    stops: tuple[Stop, ...]
    km: float

    @property
    def kg(self):
        return sum(stop.kg for stop in self.stops)


def distance(here, there):
    """Kilometres between two points (latitude, longitude) along a great circle."""
    lat1, lon1, lat2, lon2 = map(math.radians, (*here, *there))
    a = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(a))


def length(stops, depot=DEPOT):
    """Kilometres of a tour from the depot over all stops and back."""
    points = [depot, *(stop.at for stop in stops), depot]
    return sum(distance(here, there) for here, there in zip(points, points[1:]))


def nearest_first(stops, depot=DEPOT):
    left, here, tour = sorted(stops, key=lambda stop: stop.customer), depot, []
    while left:
        following = min(left, key=lambda stop: distance(here, stop.at))
        left.remove(following)
        tour.append(following)
        here = following.at
    return tour


def two_opt(tour, depot=DEPOT):
    """Turn stretches of the tour around as long as that makes it shorter."""
    best, km = list(tour), length(tour, depot)
    improved = True
    while improved:
        improved = False
        for first in range(len(best) - 1):
            for last in range(first + 1, len(best)):
                turned = best[:first] + best[first : last + 1][::-1] + best[last + 1 :]
                shorter = length(turned, depot)
                if shorter < km - 1e-9:
                    best, km, improved = turned, shorter, True
    return best


def plan(stops, lorries, depot=DEPOT):
    """Fill lorries, given as {name: capacity in kg}, one sector of the compass after the other."""
    if sum(stop.kg for stop in stops) > sum(lorries.values()):
        raise GranaryError("the lorries cannot carry all of it")
    order = sorted(stops, key=lambda stop: (math.atan2(stop.at[0] - depot[0], stop.at[1] - depot[1]), stop.customer))
    routes, waiting = [], order
    for name, capacity in sorted(lorries.items(), key=lambda item: (-item[1], item[0])):
        loaded, rest = [], []
        for stop in waiting:
            fits = sum(other.kg for other in loaded) + stop.kg <= capacity
            (loaded if fits else rest).append(stop)
        waiting = rest
        if loaded:
            tour = two_opt(nearest_first(loaded, depot), depot)
            routes.append(Route(name, tuple(tour), length(tour, depot)))
    if waiting:
        raise GranaryError(f"no lorry has room for {', '.join(stop.customer for stop in waiting)}")
    return routes
