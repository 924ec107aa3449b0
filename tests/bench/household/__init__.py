"""A household and its month: what three people ask for, and whether memory ever serves them wrong."""
