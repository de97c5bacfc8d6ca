"""Small C functions for what C's operators do otherwise than NumPy's, each written out where it is used.

``$T`` is the type, ``$U`` its unsigned twin, ``$f`` the suffix of the mathematical functions; ``$re``,
``$im`` and ``$make`` take a complex number apart and together. ``$name`` is the helper's own name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Helper:
    text: str
    headers: tuple[str, ...] = ()


_TEXTS = {
    "floor_div": """static inline $T $name(const $T a, const $T b)
{
    if (b == 0 || b == -1) { /* as NumPy: nothing by zero, and the smallest by -1 wraps */
        return ($T)(-($U)(b == 0 ? 0 : a));
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "floor_mod": """static inline $T $name(const $T a, const $T b)
{
    if (b == 0 || b == -1) {
        return 0;
    }
    const $T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
""",
    "unsigned_div": """static inline $T $name(const $T a, const $T b)
{
    return b == 0 ? 0 : a / b;
}
""",
    "unsigned_mod": """static inline $T $name(const $T a, const $T b)
{
    return b == 0 ? 0 : a % b;
}
""",
    "real_mod": """static inline $T $name(const $T a, const $T b)
{
    const $T r = fmod$f(a, b);
    if (b == 0 || r == 0) {
        return b == 0 ? r : copysign$f(0, b);
    }
    return (r < 0) != (b < 0) ? r + b : r;
}
""",
    "real_floor_div": """static inline $T $name(const $T a, const $T b)
{
    if (b == 0) {
        return a / b;
    }
    const $T r = fmod$f(a, b);
    const $T quotient = (a - r) / b - (r != 0 && (r < 0) != (b < 0) ? 1 : 0);
    if (quotient == 0) {
        return copysign$f(0, a / b);
    }
    const $T whole = floor$f(quotient);
    return quotient - whole > $half ? whole + 1 : whole;
}
""",
    "power": """static inline $T $name($T a, $T n)
{
    $W x = ($W)a, result = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1) {
            result *= x;
        }
        x *= x;
    }
    return ($T)result;
}
""",
    "shift_left": """static inline $T $name(const $T a, const $T n)
{
    return ($U)n < 8 * sizeof a ? ($T)(($W)a << n) : 0;
}
""",
    "shift_right": """static inline $T $name(const $T a, const $T n)
{
    return ($U)n < 8 * sizeof a ? a >> n : $beyond;
}
""",
    "absolute": """static inline $T $name(const $T a)
{
    return a < 0 ? ($T)(-($W)a) : a;
}
""",
    "minimum": """static inline $T $name(const $T a, const $T b)
{
    return a <= b || a != a ? a : b; /* a NaN on either side is passed on */
}
""",
    "maximum": """static inline $T $name(const $T a, const $T b)
{
    return a >= b || a != a ? a : b; /* a NaN on either side is passed on */
}
""",
    "smaller": """static inline $T $name(const $T a, const $T b)
{
    return b < a ? b : a;
}
""",
    "larger": """static inline $T $name(const $T a, const $T b)
{
    return b > a ? b : a;
}
""",
    "complex_multiply": """static inline $T $name(const $T a, const $T b)
{
    return $make($re(a) * $re(b) - $im(a) * $im(b), $re(a) * $im(b) + $im(a) * $re(b));
}
""",
    "complex_divide": """static inline $T $name(const $T a, const $T b)
{
    const $R r = $re(b), s = $im(b);
    if (fabs$f(r) >= fabs$f(s)) {
        if (r == 0 && s == 0) {
            return $make($re(a) / fabs$f(r), $im(a) / fabs$f(r));
        }
        const $R ratio = s / r, scale = 1 / (r + s * ratio);
        return $make(($re(a) + $im(a) * ratio) * scale, ($im(a) - $re(a) * ratio) * scale);
    }
    const $R ratio = r / s, scale = 1 / (s + r * ratio);
    return $make(($re(a) * ratio + $im(a)) * scale, ($im(a) * ratio - $re(a)) * scale);
}
""",
    "complex_power": """static inline $T $name(const $T a, const $T b)
{
    const $R n = $re(b);
    if ($im(b) != 0 || n != (int)n || n < 1 || n > 100) {
        return $pow(a, b);
    }
    $T result = 1, x = a;
    for (int k = (int)n; k > 0; k >>= 1) {
        if (k & 1) {
            result = $multiply(result, x);
        }
        x = $multiply(x, x);
    }
    return result;
}
""",
    "from_bfloat16": """static inline float $name(const uint16_t a)
{
    const uint32_t bits = (uint32_t)a << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""",
    "to_bfloat16": """static inline uint16_t $name(const float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest, ties to even */
}
""",
    "from_float8_e4m3": """static inline float $name(const uint8_t a)
{
    const uint32_t bits = ((uint32_t)(a & 0x7f) << 20) + (120u << 23);
    float value;
    memcpy(&value, &bits, sizeof value);
    if ((a & 0x78) == 0) {
        value = (float)(a & 7) * 0x1p-9f; /* below the normal numbers */
    }
    if ((a & 0x7f) == 0x7f) {
        value = NAN;
    }
    return a & 0x80 ? -value : value;
}
""",
    "to_float8_e4m3": """static inline uint8_t $name(const float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80;
    bits &= 0x7fffffff;
    if (bits < 121u << 23) { /* below the normal numbers: the sum rounds to multiples of 2^-9 */
        const float sum = fabsf(value) + 0x1p14f;
        memcpy(&bits, &sum, sizeof bits);
        return (uint8_t)(sign | (bits & 0xff));
    }
    const uint32_t rounded = (bits + 0x7ffff + (bits >> 20 & 1) - (120u << 23)) >> 20;
    return (uint8_t)(sign | (rounded > 0x7e ? 0x7f : rounded)); /* no infinity: what is too large is NaN */
}
""",
    "from_float8_e5m2": """static inline float $name(const uint8_t a)
{
    const uint32_t large = (a & 0x7c) == 0x7c ? 224u << 23 : 112u << 23;
    const uint32_t bits = ((uint32_t)(a & 0x7f) << 21) + large;
    float value;
    memcpy(&value, &bits, sizeof value);
    if ((a & 0x7c) == 0) {
        value = (float)(a & 3) * 0x1p-16f; /* below the normal numbers */
    }
    return a & 0x80 ? -value : value;
}
""",
    "to_float8_e5m2": """static inline uint8_t $name(const float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) {
        return (uint8_t)(sign | 0x7e);
    }
    if (bits < 113u << 23) { /* below the normal numbers: the sum rounds to multiples of 2^-16 */
        const float sum = fabsf(value) + 0x1p7f;
        memcpy(&bits, &sum, sizeof bits);
        return (uint8_t)(sign | (bits & 0xff));
    }
    const uint32_t rounded = (bits + 0xfffff + (bits >> 21 & 1) - (112u << 23)) >> 21;
    return (uint8_t)(sign | (rounded > 0x7c ? 0x7c : rounded)); /* what is too large is infinite */
}
""",
}
_HEADERS = {
    **dict.fromkeys(("real_mod", "real_floor_div", "complex_divide"), ("math",)),
    **dict.fromkeys(("from_bfloat16", "to_bfloat16", "from_float8_e5m2"), ("string",)),
    **dict.fromkeys(("from_float8_e4m3", "to_float8_e4m3", "to_float8_e5m2"), ("math", "string")),
}

HELPERS = {name: Helper(text, _HEADERS.get(name, ())) for name, text in _TEXTS.items()}


def written(base: str, values: dict[str, str]) -> str:
    """The text of a helper for one type."""
    text = HELPERS[base].text
    for key in sorted(values, key=len, reverse=True):
        text = text.replace(f"${key}", values[key])
    return text
