import unittest

from granary.events import Events


class EventsTest(unittest.TestCase):
    def test_listeners_hear_what_matches(self):
        events, heard = Events(), []
        events.listen("stock.*", heard.append)
        events.emit("stock.received", lot="L-0871")
        events.emit("order.confirmed")
        self.assertEqual([str(event) for event in heard], ["#1 stock.received lot=L-0871"])

    def test_stop(self):
        events, heard = Events(), []
        stop = events.listen("*", heard.append)
        stop()
        stop()
        events.emit("stock.received")
        self.assertEqual(heard, [])

    def test_a_failing_listener_does_not_stop_the_others(self):
        events, heard = Events(), []

        def broken(event):
            raise RuntimeError("no paper")

        events.listen("stock.*", broken)
        events.listen("stock.*", heard.append)
        events.emit("stock.received")
        self.assertEqual([event.name for event in heard], ["stock.received"])
        self.assertEqual(events.named("listener.failed")[0].facts, {"listener": "broken", "error": "no paper"})

    def test_only_the_newest_are_kept(self):
        events = Events(keep=2)
        for _ in range(5):
            events.emit("tick")
        self.assertEqual([event.number for event in events.happened], [4, 5])
        self.assertEqual(events.totals(), [("tick", 2)])
