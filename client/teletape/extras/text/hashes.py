"""TensorFlow's hashes of strings: FarmHash's fingerprint, SipHash-2-4 with a key, and the hash of to_hash_bucket.

Each takes bytes and returns an integer in [0, 2^64). They use Python's integers: about 5 µs for a word.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF

# ------------------------------------------------------------------------------------------------------------ FarmHash
# Geoff Pike, FarmHash 1.1 (farmhash.cc, namespace farmhashna): Fingerprint64.
_K0: Final = 0xC3A5_C85C_97CB_3127
_K1: Final = 0xB492_B66F_BE98_F273
_K2: Final = 0x9AE1_6A3B_2F90_404F


def _word(text: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(text[at : at + size], "little")


def _rotated(value: int, shift: int) -> int:
    return (value >> shift | value << (64 - shift)) & _MASK


def _mixed(value: int) -> int:
    return value ^ value >> 47


def _of_two(u: int, v: int, factor: int = 0x9DDF_EA08_EB38_2D69) -> int:
    a = _mixed((u ^ v) * factor & _MASK)
    return _mixed((v ^ a) * factor & _MASK) * factor & _MASK


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(text, at + 8 * i) for i in range(4))
    a = a + w & _MASK
    b = _rotated(b + a + z & _MASK, 21)
    c = a
    a = a + x + y & _MASK
    b = b + _rotated(a, 44) & _MASK
    return a + z & _MASK, b + c & _MASK


def farmhash64(text: bytes) -> int:
    """FarmHash's Fingerprint64 of bytes."""
    n = len(text)
    if n <= 16:
        return _farmhash_of_16(text, n)
    factor = _K2 + n * 2 & _MASK
    if n <= 32:
        a = _word(text, 0) * _K1 & _MASK
        b = _word(text, 8)
        c = _word(text, n - 8) * factor & _MASK
        d = _word(text, n - 16) * _K2 & _MASK
        return _of_two(
            _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK,
            a + _rotated(b + _K2 & _MASK, 18) + c & _MASK,
            factor,
        )
    if n <= 64:
        return _farmhash_of_64(text, n, factor)
    return _farmhash_of_blocks(text, n)


def _farmhash_of_16(text: bytes, n: int) -> int:
    if n >= 8:
        factor = _K2 + n * 2 & _MASK
        a = _word(text, 0) + _K2 & _MASK
        b = _word(text, n - 8)
        c = _rotated(b, 37) * factor + a & _MASK
        d = (_rotated(a, 25) + b) * factor & _MASK
        return _of_two(c, d, factor)
    if n >= 4:
        return _of_two(n + (_word(text, 0, 4) << 3) & _MASK, _word(text, n - 4, 4), _K2 + n * 2 & _MASK)
    if n:
        y = text[0] + (text[n >> 1] << 8)
        z = n + (text[n - 1] << 2)
        return _mixed(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return _K2


def _farmhash_of_64(text: bytes, n: int, factor: int) -> int:
    a = _word(text, 0) * _K2 & _MASK
    b = _word(text, 8)
    c = _word(text, n - 8) * factor & _MASK
    d = _word(text, n - 16) * _K2 & _MASK
    y = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK
    z = _of_two(y, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, factor)
    e = _word(text, 16) * factor & _MASK
    f = _word(text, 24)
    g = (y + _word(text, n - 32)) * factor & _MASK
    h = (z + _word(text, n - 24)) * factor & _MASK
    return _of_two(
        _rotated(e + f & _MASK, 43) + _rotated(g, 30) + h & _MASK,
        e + _rotated(f + a & _MASK, 18) + g & _MASK,
        factor,
    )


def _farmhash_of_blocks(text: bytes, n: int) -> int:
    seed = 81
    x, y = seed, (seed * _K1 + 113) & _MASK
    z = _mixed(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(text, 0) & _MASK
    end = (n - 1) // 64 * 64
    for at in range(0, end, 64):
        x = _rotated(x + y + v[0] + _word(text, at + 8) & _MASK, 37) * _K1 & _MASK
        y = _rotated(y + v[1] + _word(text, at + 48) & _MASK, 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _word(text, at + 40) & _MASK
        z = _rotated(z + w[0] & _MASK, 33) * _K1 & _MASK
        v = _weak(text, at, v[1] * _K1 & _MASK, x + w[0] & _MASK)
        w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
        x, z = z, x
    factor = _K1 + ((z & 0xFF) << 1) & _MASK
    at = n - 64
    w = (w[0] + (n - 1 & 63) & _MASK, w[1])
    v = (v[0] + w[0] & _MASK, v[1])
    w = (w[0] + v[0] & _MASK, w[1])
    x = _rotated(x + y + v[0] + _word(text, at + 8) & _MASK, 37) * factor & _MASK
    y = _rotated(y + v[1] + _word(text, at + 48) & _MASK, 42) * factor & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _word(text, at + 40) & _MASK
    z = _rotated(z + w[0] & _MASK, 33) * factor & _MASK
    v = _weak(text, at, v[1] * factor & _MASK, x + w[0] & _MASK)
    w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
    x, z = z, x
    return _of_two(
        _of_two(v[0], w[0], factor) + _mixed(y) * _K0 + z & _MASK,
        _of_two(v[1], w[1], factor) + x & _MASK,
        factor,
    )


# ------------------------------------------------------------------------------------------------------------- SipHash
def siphash(key: tuple[int, int], text: bytes) -> int:
    """SipHash-2-4 of bytes with a key of two whole numbers (Aumasson and Bernstein, 2012)."""
    first, second = key
    state = [
        first ^ 0x736F_6D65_7073_6575,
        second ^ 0x646F_7261_6E64_6F6D,
        first ^ 0x6C79_6765_6E65_7261,
        second ^ 0x7465_6462_7974_6573,
    ]
    n = len(text)
    whole = n - n % 8
    words = [_word(text, at) for at in range(0, whole, 8)]
    words.append(_word(text, whole) | (n & 0xFF) << 56)
    for word in words:
        state[3] ^= word
        _round(state)
        _round(state)
        state[0] ^= word
    state[2] ^= 0xFF
    for _ in range(4):
        _round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(state: list[int]) -> None:
    a, b, c, d = state
    a = a + b & _MASK
    b = _rotated(b, 51) ^ a
    a = _rotated(a, 32)
    c = c + d & _MASK
    d = _rotated(d, 48) ^ c
    a = a + d & _MASK
    d = _rotated(d, 43) ^ a
    c = c + b & _MASK
    b = _rotated(b, 47) ^ c
    state[:] = a, b, _rotated(c, 32), d


# ------------------------------------------------------------------------------------------------ TensorFlow's Hash64
def hash64(text: bytes) -> int:
    """TensorFlow's Hash64 of bytes, which is MurmurHash64A with its seed (tsl/platform/hash.cc)."""
    factor = 0xC6A4_A793_5BD1_E995
    value = 0xDECA_FCAF_FE ^ len(text) * factor & _MASK
    whole = len(text) - len(text) % 8
    for at in range(0, whole, 8):
        word = _word(text, at) * factor & _MASK
        value = (value ^ _mixed(word) * factor & _MASK) * factor & _MASK
    if whole < len(text):
        value = (value ^ _word(text, whole)) * factor & _MASK
    return _mixed(_mixed(value) * factor & _MASK)
