"""Query matrices over the cells of a marginal: identity, merged cells, adaptive grids."""
