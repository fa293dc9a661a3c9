"""Cyclic k-limited polling in LINE's discrete-event engine, run by an interpreter that has `line-solver`.

    python line_polling.py QUEUES ARRIVAL_RATE SERVICE SWITCH LIMIT SERVICES

prints one JSON object: CPU seconds of the engine, slots simulated, mean waiting time (slots).
"""

import json
import resource
import sys

from line_solver import (  # pyright: ignore[reportMissingImports]
    LDES,
    Det,
    Exp,
    Network,
    OpenClass,
    PollingType,
    Queue,
    SchedStrategy,
    Sink,
    Source,
)


def polling(queues, arrival_rate, service, switch, limit):
    """Return the model: a class of customers for each queue, one polling station."""
    model = Network("polling")
    source, sink = Source(model, "source"), Sink(model, "sink")
    station = Queue(model, "station", SchedStrategy.POLLING)
    classes = [OpenClass(model, f"queue {number}") for number in range(queues)]
    for customers in classes:
        source.set_arrival(customers, Exp(arrival_rate))
        station.set_service(customers, Det(service))
    station.set_polling_type(PollingType.KLIMITED, limit)
    routing = model.init_routing_matrix()
    for customers in classes:
        station.set_switchover(customers, Det(switch))
        routing.set(customers, customers, source, station, 1.0)
        routing.set(customers, customers, station, sink, 1.0)
    model.link(routing)
    return model


def main():
    """Simulate this many services and print what came out."""
    queues, limit, services = (int(sys.argv[place]) for place in (1, 5, 6))
    arrival_rate, service, switch = (float(value) for value in sys.argv[2:5])
    model = polling(queues, arrival_rate, service, switch, limit)
    table = LDES(model, samples=services, seed=1, verbose="silent").get_avg_table()
    engine = resource.getrusage(resource.RUSAGE_CHILDREN)
    response = table[table["Station"] == "station"]["RespT"].mean()
    result = {
        "cpu_s": engine.ru_utime + engine.ru_stime,
        "slots": services / (queues * arrival_rate),
        "waiting": response - service,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
