"""Language models over HTTP, and the model pool.

pool             `ModelPool`: creates a backend with its middleware for an address
openai           `openai/<model>`: a direct client, its options, the differences between servers as data, and replies
litellm          `litellm/<model>`: the providers of litellm
failures         maps HTTP errors to error classes
fitting          suggests a context length that fits the model and the memory
places           whether a server is on this machine or in a private network
gbnf             regular expressions as grammars of llama.cpp
"""

from __future__ import annotations
