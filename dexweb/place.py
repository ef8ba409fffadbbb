"""Where an installation keeps its data, known before its settings are read: those make what is missing."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
COMMANDS = Path(__file__).parent / "management" / "commands"
BEGINS = {"up", "engine"}


def var() -> Path:
    return Path(os.environ.get("DEXWEB_VAR") or BASE_DIR / "var").resolve()


def missing_for(words: list[str]) -> str:
    """What to tell somebody whose command, one of ours, finds no data to work on; else ""."""
    command = words[0] if words else ""
    ours = command not in BEGINS and (COMMANDS / f"{command}.py").is_file()
    if not ours or {"-h", "--help"} & set(words) or _elsewhere(command) or _is_there(command):
        return ""
    return f"No Dexweb data in {var()}; is DEXWEB_VAR set?"


def _elsewhere(command: str) -> bool:
    other = "DEXWEB_TEMPORAL_ADDRESS" if command == "worker_version" else "DATABASE_URL"
    return bool(os.environ.get(other))


def _is_there(command: str) -> bool:
    if command == "worker_version":
        return (var() / "engine.sqlite3").exists()
    file = var() / "dexweb.sqlite3"
    if not file.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            tables = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'auth_user'")
            return tables.fetchone() is not None
    except sqlite3.Error:
        # Busy or damaged: the command itself says what is the matter.
        return True
