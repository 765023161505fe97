"""What the programs here share: where the server is (PG* in the environment), and a transcript on standard output."""

import os

DATABASE = os.environ["PGDATABASE"]
WHERE = {
    "host": os.environ["PGHOST"],
    "port": int(os.environ["PGPORT"]),
    "user": os.environ["PGUSER"],
    "password": os.environ["PGPASSWORD"],
}


def show(what, value):
    print("%s: %r" % (what, value), flush=True)


def state_of(error):
    """The SQLSTATE of an exception, or of what it wraps."""
    seen = error
    while seen is not None:
        for name in ("sqlstate", "pgcode"):
            if getattr(seen, name, None):
                return getattr(seen, name)
        seen = getattr(seen, "orig", None) or seen.__cause__
    return type(error).__name__


def attempt(what, work):
    """Shows what the work gives, or the SQLSTATE of its error."""
    try:
        show(what, work())
    except Exception as error:
        show(what, "error " + state_of(error))


async def attempt_async(what, awaitable):
    try:
        show(what, await awaitable)
    except Exception as error:
        show(what, "error " + state_of(error))
