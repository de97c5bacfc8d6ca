"""Steps of a Lennard-Jones fluid in a periodic box: velocity Verlet, truncated forces, reduced units."""

import numpy as np


def molecular_dynamics(box, vx, vy, vz, x, y, z, cutoff, dt, N, STEPS):
    fx = np.empty(N, dtype=x.dtype)
    fy = np.empty(N, dtype=x.dtype)
    fz = np.empty(N, dtype=x.dtype)
    dx = np.empty(N, dtype=x.dtype)
    dy = np.empty(N, dtype=x.dtype)
    dz = np.empty(N, dtype=x.dtype)
    square = np.empty(N, dtype=x.dtype)
    inverse = np.empty(N, dtype=x.dtype)
    push = np.empty(N, dtype=x.dtype)
    for step in range(STEPS + 1):
        for i in range(N):
            dx[:] = x[i] - x
            dy[:] = y[i] - y
            dz[:] = z[i] - z
            dx[:] = dx - box[0] * np.floor(dx / box[0] + 0.5)
            dy[:] = dy - box[1] * np.floor(dy / box[1] + 0.5)
            dz[:] = dz - box[2] * np.floor(dz / box[2] + 0.5)
            square[:] = dx * dx + dy * dy + dz * dz
            square[i] = cutoff * cutoff
            inverse[:] = 1.0 / (square * square * square)
            push[:] = np.where(square < cutoff * cutoff, 24.0 * inverse * (2.0 * inverse - 1.0) / square, 0.0)
            fx[i] = np.sum(push * dx)
            fy[i] = np.sum(push * dy)
            fz[i] = np.sum(push * dz)
        if step > 0:
            vx[:] = vx + 0.5 * dt * fx
            vy[:] = vy + 0.5 * dt * fy
            vz[:] = vz + 0.5 * dt * fz
        if step < STEPS:
            vx[:] = vx + 0.5 * dt * fx
            vy[:] = vy + 0.5 * dt * fy
            vz[:] = vz + 0.5 * dt * fz
            x[:] = x + dt * vx
            y[:] = y + dt * vy
            z[:] = z + dt * vz
