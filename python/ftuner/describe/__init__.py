"""Descriptions for a reader: devices, explained plans, predicted times, work of functions."""
