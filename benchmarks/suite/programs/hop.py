"""Calls that compute next to nothing: a batch without commands, a read of one op, 40 MB up and 40 MB down."""

import numpy as np

SMALL = {"elements": 8}


def inputs(call="read", elements=8):
    return {"x": np.random.default_rng(0).random(elements, "f4"), "call": call}


def tensorflow(tf, data):
    v, call = tf.Variable(data["x"]), data["call"]

    def read():
        return [v + 1.0]

    def up(x):
        v.assign(x)
        return []

    def down():
        return [tf.identity(v)]

    return {"read": read, "up": up, "down": down}[call], [data["x"]] if call == "up" else []


def teletape(tf, data):
    if data["call"] != "empty":
        return tensorflow(tf, data)
    channel = tf.session().channel

    def empty():
        channel.round_trip()
        return []

    return empty, []


def by_hand(data):
    x, call = data["x"], data["call"]
    step = {"read": lambda: [x + 1], "up": lambda x: [], "down": lambda: [x], "empty": list}[call]
    return step, [x] if call == "up" else []
