"""Commands that begin at once: forked from a process that has imported what takes seconds.

All else is as in a process of its own: arguments, folder, environment, streams, exit code. What is imported, and what
libraries read of the environment while they are loaded (OMP_…, MALLOC_…, PYTHON…), can only be seen with subprocess.
"""

import atexit
import gc
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module

__all__ = ["python", "serve"]

_SLOW = ("torch", "torchvision", "lightning.pytorch", "hydra", "matplotlib.pyplot")
_SERVER = "import sys; from tests.forks import serve; serve(int(sys.argv[1]))"


def python(*words, cwd=None, env=None, timeout=300):
    """What `subprocess.run([sys.executable, *words], capture_output=True, text=True)` returns, with nothing to read on
    the standard input; the words are a script or -c CODE, and its arguments."""
    words = [str(word) for word in words]
    asked = {"words": words, "cwd": str(cwd or os.getcwd()), "env": dict(os.environ if env is None else env)}
    told, tell = os.pipe()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, open(told) as answers:
        socket.send_fds(_server(), [json.dumps(asked).encode()], [out.fileno(), err.fileno(), tell])
        os.close(tell)
        pid = int(answers.readline())
        if not select.select([answers], [], [], timeout)[0]:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, timeout)
        code = int(answers.readline())
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


@cache
def _server():
    """The socket of the process that forks, which lives as long as this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command, number = [sys.executable, "-c", _SERVER], theirs.fileno()
    server = subprocess.Popen([*command, str(number)], pass_fds=[number], stdin=subprocess.DEVNULL)
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # which comes first
    return ours


def serve(number):
    """Fork for everything that is asked, until nobody is left who asks."""
    for name in _SLOW:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # pages that are not written to are shared
    asking = socket.socket(fileno=number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    while True:
        asked, numbers, _, _ = socket.recv_fds(asking, 2**20, 3)
        if not asked:
            return
        if os.fork() == 0:
            break
        for each in numbers:
            os.close(each)
    *streams, tell = numbers
    asking.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(tell)
        _run(streams, **json.loads(asked))
        return
    os.write(tell, f"{pid}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):  # of one that took too long
        os.write(tell, f"{code}\n".encode())
    os._exit(0)


def _run(streams, words, cwd, env):
    """As `python words` does."""
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    random.seed()
    main = sys.modules["__main__"].__dict__
    main.clear()
    main |= {"__name__": "__main__", "__builtins__": __builtins__, "__spec__": None}
    if words[0] == "-c":
        code, sys.path[0] = words.pop(1), ""
    else:
        main["__file__"], sys.path[0] = words[0], os.path.dirname(words[0])
        with open(words[0]) as script:
            code = script.read()
    sys.argv[:] = words
    exec(compile(code, main.get("__file__", "<string>"), "exec"), main)
