import unittest

from granary import routes
from granary.errors import GranaryError
from granary.routes import Stop

MUENSTER, OSNABRUECK, BIELEFELD = (51.96, 7.63), (52.28, 8.05), (52.02, 8.53)


class DistanceTest(unittest.TestCase):
    def test_known_distance(self):
        self.assertAlmostEqual(routes.distance(MUENSTER, OSNABRUECK), 45.8, delta=0.5)

    def test_nowhere_is_no_distance(self):
        self.assertEqual(routes.length([]), 0)


class TourTest(unittest.TestCase):
    def test_two_opt_uncrosses(self):
        square = [Stop("a", (0, 1), 1), Stop("b", (1, 0), 1), Stop("c", (1, 1), 1)]
        tour = routes.two_opt(square, depot=(0, 0))
        self.assertEqual([stop.customer for stop in tour], ["a", "c", "b"])

    def test_plan_fills_the_largest_first(self):
        stops = [Stop("C-20418", OSNABRUECK, 1500), Stop("C-20077", BIELEFELD, 2000)]
        planned = routes.plan(stops, {"small": 1600, "big": 2200})
        self.assertEqual([(route.lorry, route.kg) for route in planned], [("big", 2000), ("small", 1500)])

    def test_too_much(self):
        with self.assertRaises(GranaryError):
            routes.plan([Stop("C-20418", OSNABRUECK, 2000)], {"small": 1600})
