"""Latency predictors that learn from programs as trees.

*CDMPP: A Device-Model Agnostic Framework for Latency Prediction of Tensor Programs* (Hu et al., EuroSys 2024), on the trees
of FTuner's programs (docs/program-trees.md). Needs the extra ``ftuner[learned]``.
"""
