"""Messages with queries that should find them, in eight languages and in code, and talk that hides them."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["QUERIES", "TARGETS", "chatter"]

_CASES: dict[str, tuple[str, ...]] = {
    # English: inflections, several words, questions, stop words.
    "The migrations were applied to the staging database on Tuesday.": (
        "migration applied staging",
        "applying migrations",
    ),
    "Uploads larger than 20 MB are rejected by the gateway with status 413.": (
        "rejecting upload",
        "why is the upload rejected",
    ),
    "We decided that invoices are archived after ninety days.": (
        "how long until an invoice is archived",
        "archiving invoices",
    ),
    "The flaky test was caused by a shared temporary directory.": ("flaky tests", "what caused the flaky test"),
    "Never restart the queue workers while a batch is running.": ("restarting queue worker", '"batch is running"'),
    "Prices are stored in cents, and rounded half to even.": ("price rounding", "storing prices in cent"),
    "The customer cancelled both subscriptions in March.": ("cancelling subscription", "customers cancelled"),
    "Retries use exponential backoff with jitter, at most five.": ("retry backoff", "retrying exponential"),
    "The certificate expires on 14 February.": ("expired certificates", "certificate expiry february"),
    # Names in code, by their parts, joined, in other cases.
    "def getUserId(request):\n    return request.session.user": (
        "user id",
        "userid",
        "get_user_id",
        "GET-USER-ID",
        "getuser",
    ),
    "class HTTPResponseCache:\n    pass": (
        "response cache",
        "http_response_cache",
        "responsecache",
        "HttpResponseCache",
    ),
    "MAX_RETRY_COUNT = 5": ("maxRetryCount", "retry count", "retrycount", "max-retry-count"),
    "error in src/billing/invoice_export.py line 88": ("invoice_export.py", "invoiceExport", "billing export"),
    "kubectl rollout restart deployment/api-gateway-blue": ("apiGatewayBlue", "gateway blue", "rollout restart"),
    "the parameter --dry-run prints the plan only": ("dry run", "dryrun", "dry_run"),
    # Typing errors.
    "PostgreSQL refuses the connection because the certificate chain is incomplete.": (
        "conection refused",
        "postgersql",
        "certificat chain",
        "incompelte",
    ),
    "The scheduler skips holidays in the calendar of Bavaria.": ("scheduel holidays", "calender", "shceduler"),
    "Authentication uses short tokens that the identity service signs.": ("authentification", "autentication token"),
    # Phrases.
    "Read only the first line, then the rest.": ('"first line"', '"then the rest"'),
    "The line that came first is the only one to read.": ('"came first"',),
    # German.
    "Die Verbindungen zur Datenbank werden nach zehn Minuten geschlossen, wenn sie nicht mehr benutzt werden.": (
        "Verbindung Datenbank",
        "geschlossene Verbindung",
        "Datenbanken",
    ),
    "Wir haben beschlossen, dass die Rechnungen nur noch als PDF verschickt werden.": (
        "Rechnung verschicken",
        "rechnungen pdf",
    ),
    "Der Schlüssel für die Schnittstelle ist nicht gesetzt, und das Haus hat keine Häuser.": (
        "Schnittstellen Schluessel",
        "haus",
    ),
    # French.
    "Les connexions sont fermées par le serveur, et nous avons changé le délai dans les fichiers de configuration.": (
        "connexion fermée",
        "fichier configuration",
    ),
    "Il ne faut pas supprimer les journaux avec les erreurs de paiement.": (
        "journal erreur",
        "suppression journaux paiements",
    ),
    # Spanish.
    "Los usuarios no pueden conectarse porque las contraseñas están caducadas.": (
        "usuario contraseña",
        "contraseña caducada",
    ),
    "El servidor rechaza las conexiones cuando hay muchos errores.": ("conexión servidor", "error rechazado"),
    # Italian, Portuguese, Dutch.
    "Gli utenti non possono accedere perché le connessioni sono state chiuse.": (
        "utente connessione",
        "connessione chiusa",
    ),
    "Os arquivos não foram salvos porque o disco está cheio, mas isso já foi resolvido.": (
        "arquivo disco",
        "arquivo salvo",
    ),
    "De bestanden zijn niet opgeslagen omdat er geen verbinding was met het netwerk.": (
        "bestand netwerken",
        "verbindingen",
    ),
    # Russian.
    "Соединения закрываются через десять минут, если ошибки не исправлены.": (
        "соединение ошибка",
        "исправленная ошибка",
    ),
    # Scripts without spaces.
    "数据库连接失败,请检查密码": ("连接失败", "密码"),
    "サーバーを再起動してください": ("再起動",),
}
TARGETS = tuple(_CASES)
QUERIES = tuple((query, target) for target, queries in _CASES.items() for query in queries)
"""Each query with the message that it should find."""

_COMMON = (
    "look line first read user session request test run file error build check value list name change open "
    "close path return state result client server update item table column page view plan step start end log "
    "output command data config option cache token id key get set response export count retry"
)
_OTHERS = ("und der nicht wir haben", "les est dans pour nous", "los para porque con una", "не и что на для")


def chatter(count: int, seed: int = 1) -> Iterator[str]:
    """Yield messages of common words, in which some of the words of the queries occur apart."""
    rng = random.Random(seed)
    for _ in range(count):
        words = rng.choices(_COMMON.split(), k=rng.randint(5, 30))
        if rng.random() < 0.1:
            words += rng.choice(_OTHERS).split()
        rng.shuffle(words)
        yield " ".join(words) + "."
