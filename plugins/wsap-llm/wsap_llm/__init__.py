"""Language models behind one primitive: a request goes in, a stream of typed chunks comes out.

types      Request, Message, Constraint, chunks, Reply
errors     what a backend can fail with, by class
backend    the protocol of a backend, and `collect`
"""

from __future__ import annotations
