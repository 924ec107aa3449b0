"""The host's console: pages on this machine's loopback about what the house does and remembers.

Pages (`pages/`) know no web server: they are given a `Visit` and return what is to be shown.
Everything between a request and a page is `guard`'s.
"""
