"""How often one person may post."""

import time
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from dexweb.counts import count


class PostThrottle(BaseThrottle):
    """So many posts a minute and person; counted and judged in one step of the cache."""

    seconds = 60

    def allow_request(self, request: Request, view: Any) -> bool:
        if request.method in ("GET", "HEAD", "OPTIONS") or request.user is None:
            return True
        window, into = divmod(time.time(), self.seconds)
        self.left = self.seconds - into
        key = f"api-posts:{request.user.pk}:{window:.0f}"
        return bool(count(key, 2 * self.seconds) <= settings.DEXWEB_API_POSTS_PER_MINUTE)

    def wait(self) -> float:
        return self.left + 1
