"""Facts about ATen graphs: index maps, sizes, and what nodes cost."""
