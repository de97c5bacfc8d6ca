"""Fortran functions for what its operators and intrinsics do otherwise than NumPy's, written out where used.

``$I`` is the integer kind a dtype is computed in, ``$R`` the real kind, ``$Z`` the complex one; ``$name`` is
the helper's own name. ``wide`` is the 128-bit integer kind: Fortran's own arithmetic must not overflow.
"""

from __future__ import annotations

HELPERS = {
    "floor_div": """pure function $name(a, b) result(quotient)
    integer($I), intent(in) :: a, b
    integer($I) :: quotient
    if (b == 0 .or. b == -1) then ! as NumPy: nothing by zero, and the smallest by -1 wraps
        quotient = int(-int(merge(0_$I, a, b == 0), wide), $I)
    else
        quotient = a / b
        if (modulo(a, b) /= 0 .and. (a < 0 .neqv. b < 0)) quotient = quotient - 1_$I
    end if
end function
""",
    "floor_mod": """pure function $name(a, b) result(rest)
    integer($I), intent(in) :: a, b
    integer($I) :: rest
    rest = 0
    if (b /= 0 .and. b /= -1) rest = modulo(a, b)
end function
""",
    "unsigned_div": """pure function $name(a, b) result(quotient)
    integer(c_int64_t), intent(in) :: a, b
    integer(c_int64_t) :: quotient
    integer(wide), parameter :: bits = 18446744073709551615_wide
    quotient = 0
    if (b /= 0) quotient = int(iand(int(a, wide), bits) / iand(int(b, wide), bits), c_int64_t)
end function
""",
    "unsigned_mod": """pure function $name(a, b) result(rest)
    integer(c_int64_t), intent(in) :: a, b
    integer(c_int64_t) :: rest
    integer(wide), parameter :: bits = 18446744073709551615_wide
    rest = 0
    if (b /= 0) rest = int(mod(iand(int(a, wide), bits), iand(int(b, wide), bits)), c_int64_t)
end function
""",
    "unsigned_real": """pure function $name(a) result(value)
    integer(c_int64_t), intent(in) :: a
    real($R) :: value
    value = real(iand(int(a, wide), 18446744073709551615_wide), $R)
end function
""",
    "add": """pure function $name(a, b) result(total)
    integer($I), intent(in) :: a, b
    integer($I) :: total
    total = int(int(a, wide) + int(b, wide), $I)
end function
""",
    "subtract": """pure function $name(a, b) result(difference)
    integer($I), intent(in) :: a, b
    integer($I) :: difference
    difference = int(int(a, wide) - int(b, wide), $I)
end function
""",
    "multiply": """pure function $name(a, b) result(product)
    integer($I), intent(in) :: a, b
    integer($I) :: product
    product = int(int(a, wide) * int(b, wide), $I)
end function
""",
    "power": """pure function $name(a, n) result(product)
    integer($I), intent(in) :: a, n
    integer($I) :: product, x, left
    product = 1
    x = a
    left = n
    do while (left /= 0)
        if (btest(left, 0)) product = int(int(product, wide) * int(x, wide), $I)
        x = int(int(x, wide) * int(x, wide), $I)
        left = shiftr(left, 1)
    end do
end function
""",
    "shift_left": """pure function $name(a, n) result(shifted)
    integer($I), intent(in) :: a, n
    integer($I) :: shifted
    shifted = 0
    if (n >= 0 .and. n < $bits) shifted = shiftl(a, int(n))
end function
""",
    "shift_right": """pure function $name(a, n) result(shifted)
    integer($I), intent(in) :: a, n
    integer($I) :: shifted
    shifted = $fill
    if (n >= 0 .and. n < $bits) shifted = $shift(a, int(n))
end function
""",
    "absolute": """pure function $name(a) result(value)
    integer($I), intent(in) :: a
    integer($I) :: value
    value = int(abs(int(a, wide)), $I)
end function
""",
    "same": """pure function $name(a, b) result(answer)
    real($R), intent(in) :: a, b
    logical :: answer
    answer = a <= b .and. a >= b
end function
""",
    "minimum": """pure function $name(a, b) result(value)
    real($R), intent(in) :: a, b
    real($R) :: value
    value = merge(a, b, a <= b .or. .not. a <= a) ! a NaN on either side is passed on
end function
""",
    "maximum": """pure function $name(a, b) result(value)
    real($R), intent(in) :: a, b
    real($R) :: value
    value = merge(a, b, a >= b .or. .not. a >= a) ! a NaN on either side is passed on
end function
""",
    "smaller": """pure function $name(a, b) result(value)
    real($R), intent(in) :: a, b
    real($R) :: value
    value = merge(b, a, b < a)
end function
""",
    "larger": """pure function $name(a, b) result(value)
    real($R), intent(in) :: a, b
    real($R) :: value
    value = merge(b, a, b > a)
end function
""",
    "real_mod": """pure function $name(a, b) result(rest)
    real($R), intent(in) :: a, b
    real($R) :: rest
    rest = mod(a, b)
    if (abs(b) > 0) then
        if (abs(rest) > 0) then
            if (rest < 0 .neqv. b < 0) rest = rest + b
        else if (rest >= 0) then
            rest = sign(0.0_$R, b)
        end if
    end if
end function
""",
    "real_floor_div": """pure function $name(a, b) result(quotient)
    real($R), intent(in) :: a, b
    real($R) :: quotient, rest, whole
    if (.not. abs(b) > 0) then
        quotient = a / b
        return
    end if
    rest = mod(a, b)
    quotient = (a - rest) / b
    if (abs(rest) > 0 .and. (rest < 0 .neqv. b < 0)) quotient = quotient - 1
    whole = aint(quotient)
    if (quotient < whole) whole = whole - 1
    if (quotient - whole > 0.5_$R) whole = whole + 1
    quotient = merge(sign(0.0_$R, a / b), whole, abs(quotient) <= 0)
end function
""",
    "round_down": """pure function $name(a) result(value)
    real($R), intent(in) :: a
    real($R) :: value
    value = aint(a)
    if (a < value) value = value - 1
end function
""",
    "round_up": """pure function $name(a) result(value)
    real($R), intent(in) :: a
    real($R) :: value
    value = aint(a)
    if (a > value) value = value + 1
end function
""",
    "round_even": """pure function $name(a) result(value)
    real($R), intent(in) :: a
    real($R) :: value, down
    value = a
    if (.not. (abs(a) < 1 / epsilon(a))) return
    down = aint(a)
    if (a < down) down = down - 1
    if (a - down > 0.5_$R .or. (a - down >= 0.5_$R .and. abs(mod(down, 2.0_$R)) > 0)) down = down + 1
    value = sign(down, a)
end function
""",
    "complex_power": """pure function $name(a, b) result(product)
    complex($Z), intent(in) :: a, b
    complex($Z) :: product, x
    integer :: n
    if (abs(aimag(b)) > 0 .or. abs(real(b) - anint(real(b))) > 0 .or. real(b) < 1 .or. real(b) > 100) then
        product = a ** b
        return
    end if
    product = 1
    x = a
    n = nint(real(b))
    do while (n > 0)
        if (btest(n, 0)) product = product * x
        x = x * x
        n = shiftr(n, 1)
    end do
end function
""",
    "from_bits": """pure function $name(a) result(value)
    integer($I), intent(in) :: a
    real(c_float) :: value
    integer(c_int32_t) :: magnitude
    magnitude = iand(int(a, c_int32_t), $magnitude)
    if (magnitude >= $special) then
        value = transfer(ior($infinite, shiftl(magnitude - $special, $dropped)), value)
    else if (magnitude < $normal) then
        value = real(magnitude, c_float) * 2.0_c_float ** ($unit)
    else
        value = transfer(shiftl(magnitude, $dropped) + shiftl($rebias, 23), value)
    end if
    if (a < 0) value = -value
end function
""",
    "to_bits": """pure function $name(value) result(a)
    real(c_float), intent(in) :: value
    integer($I) :: a
    integer(c_int32_t) :: magnitude, code
    magnitude = iand(transfer(value, magnitude), 2147483647)
    if (magnitude > 2139095040) then
        code = $nan
    else if (magnitude < shiftl($rebias + 1, 23)) then ! the sum rounds to multiples of 2**($least)
        code = transfer(abs(value) + $round, code) - transfer($round, code)
    else
        code = shiftr(magnitude - shiftl($rebias, 23) + shiftl(1, $dropped - 1) - 1 &
            + iand(shiftr(magnitude, $dropped), 1), $dropped)
        if (code > $largest) code = $overflow
    end if
    if (transfer(value, magnitude) < 0) code = ior(code, $sign)
    a = int(code, $I)
end function
""",
}

# mantissa digits, exponent bias and the bits of one element
_FORMATS = {
    "float16": (10, 15, 16),
    "bfloat16": (7, 127, 16),
    "float8_e4m3": (3, 7, 8),
    "float8_e5m2": (2, 15, 8),
}


def format_values(dtype: str) -> dict[str, str]:
    """What the conversions of a storage format are made of."""
    digits, bias, bits = _FORMATS[dtype]
    magnitude = 2 ** (bits - 1) - 1
    infinity = magnitude - 2**digits + 1
    finite_only = dtype == "float8_e4m3"
    least = 1 - bias - digits
    values = {
        "magnitude": magnitude,
        "special": magnitude if finite_only else infinity,
        "infinite": 2143289344 if finite_only else 2139095040,
        "normal": 2**digits,
        "dropped": 23 - digits,
        "least": least,
        "rebias": 127 - bias,
        "nan": magnitude if finite_only else infinity + 2 ** (digits - 1),
        "largest": magnitude - 1 if finite_only else infinity,
        "overflow": magnitude if finite_only else infinity,
        "sign": 2 ** (bits - 1),
    }
    values["unit"] = least
    if dtype == "bfloat16":  # a float cut short: nothing is rebased, also below the normal numbers
        values |= {"normal": 0, "unit": 0}
    spelled = {key: str(value) for key, value in values.items()}
    return {
        **spelled,
        "I": "c_int16_t" if bits == 16 else "c_int8_t",
        "round": f"2.0_c_float ** ({least + 23})",
    }


LIBM = {"exp2", "expm1", "log2", "log1p", "cbrt", "fmin", "fmax"}
"""Functions that Fortran lacks and the C library has."""


def interface(function: str, name: str, kind: str, count: int) -> list[str]:
    """The lines that make a function of the C library callable."""
    symbol = function + ("f" if kind == "c_float" else "")
    args = ", ".join("ab"[:count])
    return [
        "interface",
        f'    pure function {name}({args}) bind(C, name="{symbol}") result(value)',
        f"        import :: {kind}",
        f"        real({kind}), value, intent(in) :: {args}",
        f"        real({kind}) :: value",
        "    end function",
        "end interface",
    ]


def written(base: str, values: dict[str, str]) -> str:
    """The text of a helper for one dtype."""
    text = HELPERS[base]
    for key in sorted(values, key=len, reverse=True):
        text = text.replace(f"${key}", values[key])
    return text
