"""A specification in several modules that import from each other under other names."""
