"""Limits of connections, the same for both transports. Times are in seconds."""

# How long a server may be silent while a job runs. It sends a comment every 5 seconds.
JOB_SILENCE = 60.0

# How much longer a call is waited for than the server is given, so that the server's own error
# comes.
GRACE = 5.0

# The longest that a socket is waited for at once.
MAX_WAIT = 86400.0

# The server closes connections that are idle for 5 minutes.
MAX_IDLE = 240.0

# How many idle connections are kept.
MAX_KEPT = 64
