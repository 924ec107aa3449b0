"""A household and its month: what three people ask for, and what memory makes of it."""
