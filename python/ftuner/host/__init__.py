"""Compiled functions in this process: libraries, their functions, memory, the runtime, caches.

What a host needs to call a kernel, and the processes and files that the package works with.
"""
