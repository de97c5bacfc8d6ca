"""The first pair of neighbours in every row that falls by more than 15/16, and by how much; -1 if none does."""


def row_first_steep_drop(a, place, drop, COLS, ROWS):
    for i in range(ROWS):
        found = -1
        gap = 0.0
        for j in range(COLS - 1):
            step = a[i, j] - a[i, j + 1]
            if step > 0.9375:
                found = j
                gap = step
                break
        place[i] = found
        drop[i] = gap
