"""Every element applies the operation its opcode names: add, subtract, multiply, least, or keep."""


def opcode_dispatch(opcode, a, b, out, LEN_1D):
    for i in range(LEN_1D):
        if opcode[i] == 0:
            out[i] = a[i] + b[i]
        elif opcode[i] == 1:
            out[i] = a[i] - b[i]
        elif opcode[i] == 2:
            out[i] = a[i] * b[i]
        elif opcode[i] == 3:
            out[i] = min(a[i], b[i])
        else:
            out[i] = a[i]
