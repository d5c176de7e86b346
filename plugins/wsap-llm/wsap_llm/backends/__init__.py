"""Language models over HTTP, and the service that hands backends out by address.

sse          server-sent events from bytes
dialects     what servers that speak OpenAI's protocol do differently, as data
openai_wire  requests and replies of that protocol
openai       `openai/<model>`: a direct client
failures     from an HTTP answer to an error by class
litellm      `litellm/<model>`: whatever litellm can reach
registry     `Models`: an address becomes a backend with its wrappers
"""

from __future__ import annotations
