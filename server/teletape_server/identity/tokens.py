"""Bearer tokens of an OpenID Connect issuer: who sends a request with one, as with an API key."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Final

import jwt
from jwt.algorithms import has_crypto
from jwt.api_jwk import PyJWK, PyJWKSet
from jwt.exceptions import PyJWTError

from teletape_server.identity.keys import StoreError
from teletape_server.identity.principals import ALL, Principal, Scope
from teletape_server.identity.token_rules import LEEWAY, OWNER, TokenRules
from teletape_server.problems import Problem, overloaded

log = logging.getLogger("teletape")

#: Ids of the principals of tokens begin with it, then come digits of the token's digest.
TOKEN: Final = "oidc-"
_ALGORITHMS: Final = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split()
_SECONDS: Final = 5.0  # that the issuer has for an answer
_PAUSE_SECONDS: Final = 5.0  # between two questions to it
_LIFETIME: Final = 3600.0  # seconds after which its keys are read again
_LONGEST: Final = 1 << 20  # bytes of an answer of the issuer
#: A user's token makes no API keys: they would outlive it.
_USER: Final[frozenset[Scope]] = ALL - {"keys"}


class Issuer:
    """Looks at tokens of an issuer.

    Args:
        rules: What is valid.

    Raises:
        StoreError: The packages for tokens are not installed.
    """

    def __init__(self, rules: TokenRules) -> None:
        if not has_crypto:
            raise StoreError("--oidc needs the package cryptography: pip install 'teletape[oidc]'")
        self.rules = rules
        self._turn = asyncio.Lock()  # one thread waits for the issuer at a time
        self._keys: dict[str | None, PyJWK] = {}
        self._fetched = self._tried = -math.inf  # when, on the steady clock
        self._why = ""  # the last try has failed

    async def principal(self, token: str, chosen: Callable[[list[str]], str]) -> tuple[Principal, float, float]:
        """Returns who sends a request with a token; when it ends and when it was given, in Unix seconds.

        One that does not say when it was given is as old as can be.

        Args:
            token: The token.
            chosen: Returns the one of an owner's groups that counts.

        Raises:
            Problem: unauthenticated; overloaded: the issuer does not answer.
        """
        async with self._turn:
            claims = await asyncio.to_thread(self._claims, token)
        rules = self.rules
        owner = claims.get(rules.owner)
        if not isinstance(owner, str) or not OWNER.fullmatch(owner):
            raise refused(
                f"its claim {rules.owner!r}, the owner, has to be 1 to 64 letters, digits or ._-; found {owner!r:.80}"
            )
        named = claims.get(rules.groups)
        groups = named if isinstance(named, list) else [named]
        is_admin = bool(rules.admins) and rules.admins in groups
        group = chosen([group for group in groups if isinstance(group, str) and OWNER.fullmatch(group)])
        id = TOKEN + hashlib.sha256(token.encode()).hexdigest()[:8]
        scopes = ALL if is_admin else _USER
        principal = Principal(owner, id, "admin" if is_admin else "user", group, scopes, owner)
        return principal, claims["exp"] + LEEWAY, float(claims.get("iat", -math.inf))

    @staticmethod
    def ended(owner: str) -> Problem:
        """Returns the problem of a token that an admin has ended."""
        return refused(f"an admin has ended the tokens that {owner} had: get a new one from your issuer")

    def _claims(self, token: str) -> dict[str, Any]:
        """Returns what a token says, if the issuer has signed it, for this server, and it has not ended."""
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(jwt.get_unverified_header(token).get("kid")),
                algorithms=_ALGORITHMS,
                audience=self.rules.audience,
                issuer=self.rules.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise refused(str(error)) from None
        return claims

    def _key(self, id: str | None) -> PyJWK:
        """Returns a key of the issuer: they are read again when one is new, and when they are old.

        While it does not answer, the keys that are known count.
        """
        now = time.monotonic()
        if (id not in self._keys or now > self._fetched + _LIFETIME) and now >= self._tried + _PAUSE_SECONDS:
            self._tried = now
            try:
                self._keys, self._fetched, self._why = self._fetch(), now, ""
            except (OSError, ValueError, KeyError, TypeError, HTTPException, PyJWTError) as error:
                self._why = f"{type(error).__name__}: {error}"[:300]
                log.warning("the issuer %s of tokens gives no keys: %s", self.rules.issuer, self._why)
        if id in self._keys:
            return self._keys[id]
        if self._why:
            problem = overloaded(
                f"the token cannot be checked: the issuer {self.rules.issuer} gives no keys ({self._why})"
            )
            problem.details = {"issuer": self.rules.issuer}
            raise problem
        raise refused(f"its key {id!r:.80} is none of the issuer's")

    def _fetch(self) -> dict[str | None, PyJWK]:
        """Returns the issuer's keys by id; a single one also without."""
        issuer = self.rules.issuer
        facts = _json(issuer.rstrip("/") + "/.well-known/openid-configuration")
        if facts["issuer"] != issuer:
            raise ValueError(f"it says that it is {facts['issuer']!r}")
        keys = PyJWKSet.from_dict(_json(facts["jwks_uri"])).keys
        by_id: dict[str | None, PyJWK] = {key.key_id: key for key in keys}
        return by_id if len(keys) > 1 else by_id | {None: keys[0]}


def _json(url: str) -> dict[str, Any]:
    if not url.startswith(("https://", "http://")):  # urlopen reads files too
        raise ValueError(f"{url!r:.80} is no address of a web server")
    with urllib.request.urlopen(url, timeout=_SECONDS) as response:
        facts: dict[str, Any] = json.loads(response.read(_LONGEST))
        return facts


def refused(why: str) -> Problem:
    """Returns the problem of a token that is not valid."""
    return Problem(
        "unauthenticated",
        f"the token of the request is not valid: {why}",
        headers={"WWW-Authenticate": 'Bearer realm="teletape", error="invalid_token"'},
    )
