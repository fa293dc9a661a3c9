"""The simulator's state: one NumPy record type for each kind of entity.

Behaviour lives in plain functions over these records. Times are whole nanoseconds; counts of bytes, slots and
segments are whole numbers; `NOTHING` stands for "no index". Fields are named as in the RFC or the paper. An
entity that owns a timer or a random stream holds its number (`timer`, `stream`).
"""
