"""Runs a function in a separate process, since its callees may end their process or never return."""

import os
import signal


def run_isolated(work, seconds):
    """Returns the bytes that `work(tell)` passes to `tell`, and the exit code of its process.

    The process has `seconds` of time, ends with -SIGALRM after them, and says nothing on its standard error.
    """
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(seconds)
        work(lambda words: os.write(sender, words))
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        answer = pipe.read()
    return answer, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
