"""The engine of Metnos. Knows nothing of Telegram, the terminal or the web console."""

__version__ = "0.1.0"
