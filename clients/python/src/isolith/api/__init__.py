"""What the server can do: one module for each part of the API.

Each has result types and a class of operations that is defined once, and twice made a namespace of
methods: one that blocks and one for asyncio.
"""
