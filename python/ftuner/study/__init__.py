"""Studies of strategies: comparisons, the papers' numbers, judges, recorded plans.

Nothing of the compiler needs this package.
"""
