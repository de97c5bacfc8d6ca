"""How many leading values are needed before their whole parts reach a share of the total, and their sum."""


def prefix_quota_search(x, needed, taken, LEN_1D, TENTHS):
    total = 0
    for i in range(LEN_1D):
        total = total + int(x[i])
    quota = total * TENTHS // 10
    running = 0
    k = 0
    while running < quota:
        running = running + int(x[k])
        k = k + 1
    needed[0] = k
    taken[0] = running
