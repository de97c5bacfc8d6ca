"""Small jitted functions for what numba's operators do otherwise than NumPy's, written out where used.

``$T`` is the NumPy type, ``$name`` the helper's own name; the formats are those of c_helpers.
"""

from __future__ import annotations

HELPERS = {
    "floor_div": """
@njit
def $name(a, b):
    if b == 0 or b == -1:
        return $T(0) if b == 0 else $T(-a)
    return $T(a // b)
""",
    "floor_mod": """
@njit
def $name(a, b):
    if b == 0 or b == -1:
        return $T(0)
    return $T(a % b)
""",
    "unsigned_div": """
@njit
def $name(a, b):
    return $T(0) if b == 0 else $T(a // b)
""",
    "unsigned_mod": """
@njit
def $name(a, b):
    return $T(0) if b == 0 else $T(a % b)
""",
    "real_mod": """
@njit
def $name(a, b):
    r = $T(np.fmod(a, b))
    if b == 0:
        return r
    if r == 0:
        return $T(np.copysign($T(0), b))
    return r + b if (r < 0) != (b < 0) else r
""",
    "real_floor_div": """
@njit
def $name(a, b):
    if b == 0:
        return a / b
    r = $T(np.fmod(a, b))
    quotient = (a - r) / b
    if r != 0 and (r < 0) != (b < 0):
        quotient -= $T(1)
    if quotient == 0:
        return $T(np.copysign($T(0), a / b))
    whole = $T(np.floor(quotient))
    return whole + $T(1) if quotient - whole > $T(0.5) else whole
""",
    "power": """
@njit
def $name(a, n):
    result = $T(1)
    while n > 0:
        if n & $T(1):
            result = $T(result * a)
        a = $T(a * a)
        n = $T(n >> $T(1))
    return result
""",
    "shift_left": """
@njit
def $name(a, n):
    return $T(a << n) if $T(0) <= n < $T($bits) else $T(0)
""",
    "shift_right": """
@njit
def $name(a, n):
    if $T(0) <= n < $T($bits):
        return $T(a >> n)
    return $T(-1) if a < $T(0) else $T(0)
""",
    "smaller": """
@njit
def $name(a, b):
    return b if b < a else a
""",
    "larger": """
@njit
def $name(a, b):
    return b if b > a else a
""",
    "complex_power": """
@njit
def $name(a, b):
    n = b.real
    if b.imag != 0 or n != int(n) or n < 1 or n > 100:
        return $T(a**b)
    k = int(n)
    result = $T(1)
    while k > 0:
        if k & 1:
            result = $T(result * a)
        a = $T(a * a)
        k >>= 1
    return result
""",
    "from_float16": """
@njit
def $name(a):
    bits = np.uint32(a & 0x7FFF) << 13
    if a & 0x7C00 == 0x7C00:
        value = np.uint32(bits + (224 << 23)).view(np.float32)
    elif a & 0x7C00 == 0:  # below the normal numbers
        value = np.float32(a & 0x3FF) * np.float32(2.0**-24)
    else:
        value = np.uint32(bits + (112 << 23)).view(np.float32)
    return -value if a & 0x8000 else value
""",
    "to_float16": """
@njit
def $name(value):
    bits = np.float32(value).view(np.uint32)
    sign = (bits >> 16) & 0x8000
    bits &= np.uint32(0x7FFFFFFF)
    if bits > 0x7F800000:
        return np.uint16(sign | 0x7E00)
    if bits < 113 << 23:  # below the normal numbers: the sum rounds to multiples of 2**-24
        total = abs(np.float32(value)) + np.float32(0.5)
        return np.uint16(sign | (np.float32(total).view(np.uint32) - np.uint32(0x3F000000)))
    rounded = (bits + 0xFFF + ((bits >> 13) & 1) - (112 << 23)) >> 13
    return np.uint16(sign | min(rounded, 0x7C00))
""",
    "from_bfloat16": """
@njit
def $name(a):
    return np.uint32(np.uint32(a) << 16).view(np.float32)
""",
    "to_bfloat16": """
@njit
def $name(value):
    bits = np.float32(value).view(np.uint32)
    if value != value:
        return np.uint16((bits >> 16) | 0x40)
    return np.uint16((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)  # to nearest, ties to even
""",
    "from_float8_e4m3": """
@njit
def $name(a):
    value = np.uint32((np.uint32(a & 0x7F) << 20) + (120 << 23)).view(np.float32)
    if a & 0x78 == 0:  # below the normal numbers
        value = np.float32(a & 7) * np.float32(2.0**-9)
    if a & 0x7F == 0x7F:
        value = np.float32(np.nan)
    return -value if a & 0x80 else value
""",
    "to_float8_e4m3": """
@njit
def $name(value):
    bits = np.float32(value).view(np.uint32)
    sign = (bits >> 24) & 0x80
    bits &= np.uint32(0x7FFFFFFF)
    if bits < 121 << 23:  # below the normal numbers: the sum rounds to multiples of 2**-9
        total = abs(np.float32(value)) + np.float32(2.0**14)
        return np.uint8(sign | (np.float32(total).view(np.uint32) & 0xFF))
    rounded = (bits + 0x7FFFF + ((bits >> 20) & 1) - (120 << 23)) >> 20
    return np.uint8(sign | (0x7F if rounded > 0x7E else rounded))  # what is too large is NaN
""",
    "from_float8_e5m2": """
@njit
def $name(a):
    large = 224 << 23 if a & 0x7C == 0x7C else 112 << 23
    value = np.uint32((np.uint32(a & 0x7F) << 21) + large).view(np.float32)
    if a & 0x7C == 0:  # below the normal numbers
        value = np.float32(a & 3) * np.float32(2.0**-16)
    return -value if a & 0x80 else value
""",
    "to_float8_e5m2": """
@njit
def $name(value):
    bits = np.float32(value).view(np.uint32)
    sign = (bits >> 24) & 0x80
    bits &= np.uint32(0x7FFFFFFF)
    if bits > 0x7F800000:
        return np.uint8(sign | 0x7E)
    if bits < 113 << 23:  # below the normal numbers: the sum rounds to multiples of 2**-16
        total = abs(np.float32(value)) + np.float32(2.0**7)
        return np.uint8(sign | (np.float32(total).view(np.uint32) & 0xFF))
    rounded = (bits + 0xFFFFF + ((bits >> 21) & 1) - (112 << 23)) >> 21
    return np.uint8(sign | min(rounded, 0x7C))  # what is too large is infinite
""",
}
