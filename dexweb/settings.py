"""All settings, read from the environment; the defaults are safe for one laptop.

Every variable is listed in docs/install.md. A value that cannot be read stops the start.
"""

from environs import Env, validate

from dexweb import place
from dexweb.keys import signing_key
from dexweb.periods import whole_days

env = Env()
between, KIB = validate.Range, 1024

BASE_DIR = place.BASE_DIR
DEXWEB_VAR = place.var()
DEXWEB_VAR.mkdir(mode=0o700, parents=True, exist_ok=True)

DEBUG = env.bool("DEXWEB_DEBUG", False)
SECRET_KEY = env.str("DEXWEB_SECRET_KEY", "") or signing_key(DEXWEB_VAR)
ALLOWED_HOSTS = env.list("DEXWEB_ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("DEXWEB_TRUSTED_ORIGINS", [])
DEXWEB_HTTPS = env.bool("DEXWEB_HTTPS", False)
FORCE_SCRIPT_NAME = env.str("DEXWEB_PATH_PREFIX", "").rstrip("/") or None

DEXWEB_PORT = env.int("DEXWEB_PORT", 8000)
DEXWEB_PUBLIC_URL = env.str("DEXWEB_PUBLIC_URL", "").rstrip("/") or (
    f"http://127.0.0.1:{DEXWEB_PORT}{FORCE_SCRIPT_NAME or ''}"
)
DEXWEB_WEBHOOK_ALLOW_PRIVATE = env.bool("DEXWEB_WEBHOOK_ALLOW_PRIVATE", False)
DEXWEB_DEMO = env.bool("DEXWEB_DEMO", True)
DEXWEB_DEMO_PASSWORD = env.str("DEXWEB_DEMO_PASSWORD", "")
DEXWEB_TEMPORAL_ADDRESS = env.str("DEXWEB_TEMPORAL_ADDRESS", "")
DEXWEB_TEMPORAL_NAMESPACE = env.str("DEXWEB_TEMPORAL_NAMESPACE", "default")
DEXWEB_ENGINE_TIMEOUT = env.float("DEXWEB_ENGINE_TIMEOUT", 5.0)
DEXWEB_HEARTBEAT_TIMEOUT = env.float("DEXWEB_HEARTBEAT_TIMEOUT", 10.0)
# Bounds of sessions and of what they say; docs/limits.md tells what happens at each.
DEXWEB_LIMIT_MESSAGE = env.int("DEXWEB_LIMIT_MESSAGE", 64 * KIB, validate=between(KIB, 256 * KIB))
DEXWEB_LIMIT_ARGUMENTS = env.int(
    "DEXWEB_LIMIT_ARGUMENTS", 64 * KIB, validate=between(KIB, 256 * KIB)
)
DEXWEB_LIMIT_RESULT = env.int("DEXWEB_LIMIT_RESULT", 256 * KIB, validate=between(KIB, 2048 * KIB))
DEXWEB_LIMIT_RESULT_KEPT = env.int(
    "DEXWEB_LIMIT_RESULT_KEPT", 2048 * KIB, validate=between(KIB, 2048 * KIB)
)
DEXWEB_LIMIT_EVENT = env.int("DEXWEB_LIMIT_EVENT", 100 * KIB, validate=between(KIB, 512 * KIB))
DEXWEB_LIMIT_PARALLEL_CALLS = env.int("DEXWEB_LIMIT_PARALLEL_CALLS", 16, validate=between(1, 64))
DEXWEB_LIMIT_MODEL_CALLS = env.int("DEXWEB_LIMIT_MODEL_CALLS", 50, validate=between(1, 500))
DEXWEB_LIMIT_CONTEXT = env.float("DEXWEB_LIMIT_CONTEXT", 0.8, validate=between(0.1, 0.95))
DEXWEB_LIMIT_HISTORY_EVENTS = env.int(
    "DEXWEB_LIMIT_HISTORY_EVENTS", 10_000, validate=between(20, 40_000)
)
DEXWEB_LIMIT_HISTORY_BYTES = env.int(
    "DEXWEB_LIMIT_HISTORY_BYTES", 8192 * KIB, validate=between(64 * KIB, 32 * 1024 * KIB)
)
DEXWEB_SOCKET_PING = env.float("DEXWEB_SOCKET_PING", 20.0)
DEXWEB_SOCKET_IDLE = env.float("DEXWEB_SOCKET_IDLE", 60.0)
DEXWEB_SOCKET_RECHECK = env.float("DEXWEB_SOCKET_RECHECK", 5.0)
DEXWEB_CREDENTIAL_KEYS = env.list("DEXWEB_CREDENTIAL_KEYS", [])
DEXWEB_AUDIT_KEEP = whole_days(kept) if (kept := env.str("DEXWEB_AUDIT_KEEP", "")) else None
DEXWEB_ENCRYPT_ENGINE_STATE = env.bool("DEXWEB_ENCRYPT_ENGINE_STATE", False)
DEXWEB_WORKER_VERSION = env.str("DEXWEB_WORKER_VERSION", "").strip()
DEXWEB_SPEND_LIMIT = env.str("DEXWEB_SPEND_LIMIT", "sessions_app.spend.budgets.Budgets")
DEXWEB_DOT = env.str("DEXWEB_DOT", "")
DEXWEB_LAYOUT_TIMEOUT = env.float("DEXWEB_LAYOUT_TIMEOUT", 5.0)

INSTALLED_APPS = [
    "dexweb.admin_config.DexwebAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "django_htmx",
    "rest_framework",
    "rest_framework.authtoken",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "dexweb",
    "sessions_app",
    "approvals_app",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dexweb.middleware.NoStoreMiddleware",
    "dexweb.middleware.SamePersonMiddleware",
    "dexweb.middleware.DatabaseBusyMiddleware",
    "dexweb.middleware.audit_surface",
]

ROOT_URLCONF = "dexweb.urls"
ASGI_APPLICATION = "dexweb.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dexweb.context.chrome",
            ]
        },
    }
]

DATABASES = {"default": env.dj_db_url("DATABASE_URL", f"sqlite:///{DEXWEB_VAR / 'dexweb.sqlite3'}")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 5,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    # One pool per process; a persistent connection per thread would grow without bound under ASGI.
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    options = DATABASES["default"].setdefault("OPTIONS", {})  # the URL's own, like sslmode
    options["pool"] = {"min_size": 1, "max_size": 8, "timeout": 10}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 2000},
    }
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "session-list"
LOGOUT_REDIRECT_URL = "login"

EMAIL_HOST = env.str("DEXWEB_EMAIL_HOST", "")
EMAIL_PORT = env.int("DEXWEB_EMAIL_PORT", 587)
EMAIL_HOST_USER = env.str("DEXWEB_EMAIL_USER", "")
EMAIL_HOST_PASSWORD = env.str("DEXWEB_EMAIL_PASSWORD", "")
DEXWEB_EMAIL_SECURITY = env.str(
    "DEXWEB_EMAIL_SECURITY", "starttls", validate=validate.OneOf(["starttls", "tls", "none"])
)
EMAIL_USE_TLS = DEXWEB_EMAIL_SECURITY == "starttls"
EMAIL_USE_SSL = DEXWEB_EMAIL_SECURITY == "tls"
EMAIL_TIMEOUT = 5
DEFAULT_FROM_EMAIL = env.str("DEXWEB_EMAIL_FROM", "Dexweb <dexweb@localhost>")
# Without a mail server nobody is promised a mail.
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'dummy'}.EmailBackend"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = env.str("DEXWEB_TIME_ZONE", "UTC")

STATIC_URL = "static/"
STATIC_ROOT = DEXWEB_VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = DEXWEB_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if DEXWEB_HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["sessions_app.api.renderers.ExactJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["sessions_app.api.parsers.ExactJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "sessions_app.api.problems.problem_handler",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
DEXWEB_API_POSTS_PER_MINUTE = env.int("DEXWEB_API_POSTS_PER_MINUTE", 1200)
SPECTACULAR_SETTINGS = {
    "TITLE": "Dexweb",
    "DESCRIPTION": "Durable AI-agent sessions: browse, watch, approve.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "PREPROCESSING_HOOKS": ["sessions_app.api.schema.without_alternates"],
    "ENUM_NAME_OVERRIDES": {
        "SessionStatus": "sessions_app.models.Session.Status",
        "StepStatus": "sessions_app.models.Step.Status",
        "MessageState": "sessions_app.models.Message.State",
        "ApprovalState": "approvals_app.models.Interrupt.State",
        "ApprovalKind": "approvals_app.models.Interrupt.Kind",
        "Delivery": "approvals_app.models.Decision.State",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"known_causes": {"()": "dexweb.engine.known_causes.KnownCauses"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.log_level("DEXWEB_LOG_LEVEL", "INFO")},
    # A request line carries the query string of a socket or a search: kept out of the log.
    "loggers": {
        "daphne": {"level": "WARNING"},
        "django.channels": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        # What a worker does when it is stopped, our command says.
        "temporalio.worker._worker": {"level": "WARNING"},
        "temporalio.worker._workflow": {"filters": ["known_causes"]},
    },
}
