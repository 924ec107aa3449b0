"""What every executor may lean on: the call, the result, files, text and the network hook.

Runs inside the child process and is signed with the executors: it never imports `core`.
Nothing is imported here, so that a call pays only for the modules it names:
`from executors._sdk import call, files, result`.
"""

VERSION = "1"
