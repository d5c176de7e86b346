"""Language models over HTTP, and the pool that hands out models by address.

pool             `ModelPool`: an address becomes a backend with its middlewares
openai           `openai/<model>`: a direct client; its options in `openai_options`
litellm          `litellm/<model>`: whatever litellm can reach
dialects         requests of OpenAI's protocol, and what servers do differently, as data
wire             replies of that protocol, whole or as server-sent events
failures         from an HTTP answer to an error by class
fitting          a context that fits the model and the memory
"""

from __future__ import annotations
