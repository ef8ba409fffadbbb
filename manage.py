#!/usr/bin/env python
"""Django's command line for Dexweb."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dexweb.settings")
    from dexweb import place

    if missing := place.missing_for(sys.argv[1:]):
        sys.exit(missing)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
