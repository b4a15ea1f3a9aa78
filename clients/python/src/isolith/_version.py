"""The version of the package."""

VERSION = "0.1.0"

USER_AGENT = f"isolith-python/{VERSION}"
